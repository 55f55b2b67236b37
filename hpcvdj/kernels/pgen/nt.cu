// Generation probabilities of nucleotide sequences: a thread is one junction.
//
// nt_cpu.py says how, and the order of summation is the same.  Left and Right are made base by base.  Left needs only
// the values of the last step, so it stays in registers; Right is read at many places, and is kept in shared memory,
// [place][thread], where the threads of a warp meet in no bank whichever places they read.  A block has junctions of one
// V-J pair, so its threads go through the same groups, and share the group's table of D forms.

#include "../tile.cuh"

constexpr int ROW_BASES = 4, ROWS = 256;

// Prefix trees of V forms, or of J forms read from their ends; see Tries in tables.py.
struct Tries {
    const int *child;
    const double *alone, *ended, *beyond;
};

// An insertion; see Chain in tables.py.
struct Chain {
    const double *lengths, *step, *first;
    int lags;
};

// Two weights that are loaded at once.
struct __align__(16) Two {
    double first, second;
};

template <int W>
struct Junction {
    u64 words[W];
    int length;

    __device__ __forceinline__ int base(int place) const
    {
        u64 word = words[0];
        #pragma unroll
        for (int w = 1; w < W; w++) word = place >= BASES_PER_WORD * w ? words[w] : word;
        return (int)(word >> (62 - 2 * (place & 31))) & 3;
    }
};

// The weights of all forms and insertions that end after 1, 2, … bases, one after another.
template <int W, bool FORWARDS>
struct Side {
    const Junction<W> &junction;
    const Tries &tries;
    const Chain &chain;
    const int root;
    int node, q = 0, lag = 0, last = 0;
    // Insertions that began before the last node, and at it: the product of their bases since the node.
    double stepped = 0, begun = 0;

    __device__ __forceinline__ Side(const Junction<W> &junction, const Tries &tries, const Chain &chain, int root)
        : junction(junction), tries(tries), chain(chain), root(root), node(root)
    {
    }

    // The next weight into `weight`; false if there is none.
    __device__ __forceinline__ bool next(double &weight)
    {
        if (q == junction.length) return false;
        const int base = junction.base(FORWARDS ? q : junction.length - 1 - q);
        if (lag == 0) {
            const int following = tries.child[4 * node + base];
            if (following >= 0) {
                node = following;
                last = base;
                q++;
                weight = tries.ended[node];
                return true;
            }
            if (node == root) return false;
            stepped = chain.step[4 * last + base];
            begun = chain.first[base] * tries.alone[node];
        } else {
            const double step = chain.step[4 * last + base];
            stepped *= step;
            begun *= step;
        }
        if (++lag >= chain.lags) return false;
        last = base;
        q++;
        weight = stepped * tries.beyond[(i64)node * chain.lags + lag] + begun * chain.lengths[lag];
        return true;
    }
};

// STAGED: the trie of D forms and their weights are copied to shared memory too, not only the table of short forms.
template <int W, bool STAGED>
__global__ void __launch_bounds__(MOST_THREADS) nucleotides(
    const u64 *__restrict__ words,   // [junctions, W]
    const u8 *__restrict__ lengths,  // [junctions]
    const int *__restrict__ rows,    // junctions to compute, grouped by pair
    const Tile *__restrict__ tiles,  // [gridDim.x], of `rows`
    const int *__restrict__ first_group, const int *__restrict__ group_v, const int *__restrict__ group_j,
    const int *__restrict__ group_d,
    const int *__restrict__ v_child, const double *__restrict__ v_alone, const double *__restrict__ v_ended,
    const double *__restrict__ v_beyond,
    const int *__restrict__ j_child, const double *__restrict__ j_alone, const double *__restrict__ j_ended,
    const double *__restrict__ j_beyond,
    const double *__restrict__ vd_lengths, const double *__restrict__ vd_step, const double *__restrict__ vd_first,
    int vd_lags,
    const double *__restrict__ dj_lengths, const double *__restrict__ dj_step, const double *__restrict__ dj_first,
    int dj_lags,
    const int *__restrict__ d_child,         // [d_nodes, 4]
    const double *__restrict__ weights,      // [tables, d_nodes]
    const Two *__restrict__ short_forms,     // [tables, 2, ROWS]: forms of 1 and 2, and of 3 and 4 bases
    const int *__restrict__ longer_forms,    // [ROWS]
    int d_nodes,
    int longest,                             // bases of any of the junctions
    int columns, double *__restrict__ out)   // [junctions, columns], the column of these values
{
    extern __shared__ __align__(16) u8 shared[];
    Two *const table = (Two *)shared;                             // [2, ROWS]
    double *const weights_here = (double *)(table + 2 * ROWS);    // [d_nodes] if STAGED
    const int staged = STAGED ? d_nodes : 0;
    double *const right = weights_here + staged + threadIdx.x;    // [longest + 1 + ROW_BASES, threads]
    const int stride = blockDim.x;
    int *const longer = (int *)(weights_here + staged + (longest + 1 + ROW_BASES) * stride);  // [ROWS]
    short *const child_here = (short *)(longer + ROWS);           // [d_nodes, 4] if STAGED

    const Tile tile = tiles[blockIdx.x];
    const Tries v = {v_child, v_alone, v_ended, v_beyond}, j = {j_child, j_alone, j_ended, j_beyond};
    const Chain vd = {vd_lengths, vd_step, vd_first, vd_lags}, dj = {dj_lengths, dj_step, dj_first, dj_lags};
    const bool has_d = d_nodes > 1;
    const bool active = (int)threadIdx.x < tile.rows;
    const i64 row = rows[tile.row + (active ? threadIdx.x : 0)];
    Junction<W> own;
    own.length = active ? lengths[row] : 0;
    #pragma unroll
    for (int w = 0; w < W; w++) own.words[w] = words[row * W + w];

    if (has_d)
        for (int k = threadIdx.x; k < ROWS; k += stride) longer[k] = longer_forms[k];
    for (int k = threadIdx.x; k < 4 * staged; k += stride) child_here[k] = (short)d_child[k];

    double total = 0;
    int loaded = -1;
    for (int group = first_group[tile.pair]; group < first_group[tile.pair + 1]; group++) {
        const int t = group_d[group];
        const double *const weights_there = weights + (i64)t * d_nodes;
        const double *const weight = STAGED ? weights_here : weights_there;
        if (t != loaded) {
            // Nobody reads the last table any more.
            __syncthreads();
            if (has_d)
                for (int k = threadIdx.x; k < 2 * ROWS; k += stride) table[k] = short_forms[t * 2 * ROWS + k];
            for (int k = threadIdx.x; k < staged; k += stride) weights_here[k] = weights_there[k];
            __syncthreads();
            loaded = t;
        }
        const double empty = weight[0];

        bool reached = false;
        int e = own.length;
        Side<W, false> back(own, j, dj, group_j[group]);
        for (double value; back.next(value);) {
            right[--e * stride] = value;
            reached |= value > 0 && e > 0;
        }
        // Most J alleles have no form that fits.
        if (!reached) continue;
        while (e > 0) right[--e * stride] = 0;
        for (int k = 0; k <= ROW_BASES; k++) right[(own.length + k) * stride] = 0;

        double part = 0;
        Side<W, true> front(own, v, vd, group_v[group]);
        int code = own.base(1) << 4 | own.base(2) << 2 | own.base(3);
        for (double left; front.next(left) && front.q < own.length;) {
            const int q = front.q;
            const double *const here = right + q * stride;
            if (!has_d) {
                part += left * here[0];
                continue;
            }
            const int last = q + ROW_BASES - 1;
            code = (code << 2 | (last < own.length ? own.base(last) : 0)) & (ROWS - 1);
            if (left == 0) continue;
            const Two low = table[code], high = table[ROWS + code];
            double forms = empty * here[0];
            forms += low.first * here[stride];
            forms += low.second * here[2 * stride];
            forms += high.first * here[3 * stride];
            forms += high.second * here[4 * stride];
            int node = longer[code];
            for (int end = q + ROW_BASES; node >= 0 && end < own.length - 1;) {
                const int place = 4 * node + own.base(end);
                node = STAGED ? child_here[place] : d_child[place];
                end++;
                if (node >= 0) forms += weight[node] * right[end * stride];
            }
            part += left * forms;
        }
        total += has_d ? part : part * empty;
    }
    if (active) out[row * columns] = total;
}
