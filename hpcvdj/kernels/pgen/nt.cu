// Generation probabilities of nucleotide sequences: a thread is one junction.
//
// nt_cpu.py says how, and the order of summation is the same.  Left and Right are made base by base.  Left needs only
// the values of the last step, so it stays in registers; Right is read at many places, and is kept in shared memory,
// [warp][place][lane], where the threads of a warp meet in no bank whichever places they read.  A block has junctions of
// one V-J pair, so its threads go through the same groups, and share the group's table of D forms; they take several
// junctions in turn, since copying the tables takes as long as half a junction.

#include "../tile.cuh"

constexpr int ROW_BASES = 4, ROWS = 256, LONGER = 4 * ROWS;
constexpr int LANES = 32;  // of a warp

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

// The next nodes of a D form, by base; -1 where there is none.
struct __align__(16) Links {
    int to[4];
};
struct __align__(8) ShortLinks {
    short to[4];
};

template <int W>
struct Junction {
    u64 words[W];
    int length;
};

// The bases of a junction one after another, from the first or from the last.
template <int W, bool FORWARDS>
struct Bases {
    u64 rest[W];

    __device__ __forceinline__ explicit Bases(const Junction<W> &junction)
    {
        const int empty = W * BASES_PER_WORD - junction.length;
        #pragma unroll
        for (int w = 0; w < W; w++) {
            rest[w] = FORWARDS ? junction.words[w] : 0;
            #pragma unroll
            for (int from = 0; from <= w && !FORWARDS; from++) {
                const Packed two = {from ? junction.words[from - 1] : 0, junction.words[from]};
                if (w - from == empty / BASES_PER_WORD) rest[w] = push_back(two, empty % BASES_PER_WORD).low;
            }
        }
    }

    __device__ __forceinline__ int next()
    {
        const int base = FORWARDS ? (int)(rest[0] >> 62) : (int)(rest[W - 1] & 3);
        skip(1);
        return base;
    }

    // Fewer bases than a word has, and at least one.
    __device__ __forceinline__ void skip(int bases)
    {
        #pragma unroll
        for (int k = 0; k < W; k++) {
            const int w = FORWARDS ? k : W - 1 - k;
            const u64 following = k == W - 1 ? 0 : rest[FORWARDS ? w + 1 : w - 1];
            rest[w] = FORWARDS ? rest[w] << 2 * bases | following >> (64 - 2 * bases)
                               : rest[w] >> 2 * bases | following << (64 - 2 * bases);
        }
    }
};

// The weights of all forms and insertions that end after 1, 2, … bases, one after another.
template <int W, bool FORWARDS>
struct Side {
    const Tries &tries;
    const Chain &chain;
    const int root, length;
    Bases<W, FORWARDS> bases;
    int node, q = 0, lag = 0, last = 0;
    // Insertions that began before the last node, and at it: the product of their bases since the node.
    double stepped = 0, begun = 0;
    const double *beyond = nullptr;  // of the last node

    __device__ __forceinline__ Side(const Junction<W> &junction, const Tries &tries, const Chain &chain, int root)
        : tries(tries), chain(chain), root(root), length(junction.length), bases(junction), node(root)
    {
    }

    // The next weight into `weight`; false if there is none.
    __device__ __forceinline__ bool next(double &weight)
    {
        if (q == length) return false;
        const int base = bases.next();
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
            beyond = tries.beyond + (i64)node * chain.lags;
        } else {
            const double step = chain.step[4 * last + base];
            stepped *= step;
            begun *= step;
        }
        if (++lag >= chain.lags) return false;
        last = base;
        q++;
        weight = stepped * beyond[lag] + begun * chain.lengths[lag];
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
    const Links *__restrict__ d_child,       // [d_nodes]
    const double *__restrict__ weights,      // [tables, d_nodes]
    const Two *__restrict__ short_forms,     // [tables, 2, ROWS]: forms of 1 and 2, and of 3 and 4 bases
    const Links *__restrict__ longer_forms,  // [LONGER]: nodes of ROW_BASES + 1 bases
    int d_nodes,
    int longest,                             // bases of any of the junctions
    int columns, double *__restrict__ out)   // [junctions, columns], the column of these values
{
    extern __shared__ __align__(16) u8 shared[];
    const int staged = STAGED ? d_nodes : 0, places = longest + 1 + ROW_BASES;
    Two *const table = (Two *)shared;                             // [2, ROWS]
    Links *const longer_here = (Links *)(table + 2 * ROWS);       // [LONGER]
    double *const vd_here = (double *)(longer_here + LONGER / 4), *const dj_here = vd_here + 16;  // [4, 4]: their `step`
    double *const weights_here = dj_here + 16;                    // [d_nodes] if STAGED
    ShortLinks *const child_here = (ShortLinks *)(weights_here + staged);  // [d_nodes] if STAGED
    // Of this thread, [places] in steps of a warp.
    double *const right = (double *)(child_here + staged) + threadIdx.x / LANES * places * LANES + threadIdx.x % LANES;
    const int *const longer = longer_here->to;
    const Tile tile = tiles[blockIdx.x];
    const Tries v = {v_child, v_alone, v_ended, v_beyond}, j = {j_child, j_alone, j_ended, j_beyond};
    const Chain vd = {vd_lengths, vd_here, vd_first, vd_lags}, dj = {dj_lengths, dj_here, dj_first, dj_lags};
    const bool has_d = d_nodes > 1;
    if (threadIdx.x < 16) {
        vd_here[threadIdx.x] = vd_step[threadIdx.x];
        dj_here[threadIdx.x] = dj_step[threadIdx.x];
    }
    if (has_d)
        for (int k = threadIdx.x; k < LONGER / 4; k += blockDim.x) longer_here[k] = longer_forms[k];
    for (int k = threadIdx.x; k < staged; k += blockDim.x) {
        const Links links = d_child[k];
        child_here[k] = {(short)links.to[0], (short)links.to[1], (short)links.to[2], (short)links.to[3]};
    }

    int loaded = -1;
    for (int begin = 0; begin < tile.rows; begin += blockDim.x) {
        const int place = begin + threadIdx.x;
        const bool active = place < tile.rows;
        const i64 row = rows[tile.row + (active ? place : 0)];
        Junction<W> own;
        own.length = active ? lengths[row] : 0;
        #pragma unroll
        for (int w = 0; w < W; w++) own.words[w] = words[row * W + w];

        double total = 0;
        for (int group = first_group[tile.pair]; group < first_group[tile.pair + 1]; group++) {
            const int t = group_d[group];
            const double *const weights_there = weights + (i64)t * d_nodes;
            const double *const weight = STAGED ? weights_here : weights_there;
            if (t != loaded) {
                // Nobody reads the last table any more.
                __syncthreads();
                if (has_d)
                    for (int k = threadIdx.x; k < 2 * ROWS; k += blockDim.x) table[k] = short_forms[t * 2 * ROWS + k];
                for (int k = threadIdx.x; k < staged; k += blockDim.x) weights_here[k] = weights_there[k];
                __syncthreads();
                loaded = t;
            }
            const double empty = weight[0];

            bool reached = false;
            int e = own.length;
            Side<W, false> back(own, j, dj, group_j[group]);
            for (double value; back.next(value);) {
                right[--e * LANES] = value;
                reached |= value > 0 && e > 0;
            }
            while (e > 0) right[--e * LANES] = 0;
            for (int k = 0; k <= ROW_BASES; k++) right[(own.length + k) * LANES] = 0;

            // Most J alleles have no form that fits.
            if (!reached) continue;
            double part = 0;
            Side<W, true> front(own, v, vd, group_v[group]);
            for (double left; front.next(left) && front.q < own.length;) {
                const double *const here = right + front.q * LANES;
                if (left == 0) continue;
                if (!has_d) {
                    part += left * here[0];
                    continue;
                }
                const int code = (int)(front.bases.rest[0] >> (64 - 2 * (ROW_BASES + 1)));
                const Two low = table[code >> 2], high = table[ROWS + (code >> 2)];
                double forms = empty * here[0];
                forms += low.first * here[LANES];
                forms += low.second * here[2 * LANES];
                forms += high.first * here[3 * LANES];
                forms += high.second * here[4 * LANES];
                int node = longer[code];
                if (node >= 0) {
                    Bases<W, true> ahead = front.bases;
                    ahead.skip(ROW_BASES + 1);
                    for (int end = front.q + ROW_BASES + 1;; end++) {
                        forms += weight[node] * right[end * LANES];
                        if (end >= own.length - 1) break;
                        const int base = ahead.next();
                        node = STAGED ? child_here[node].to[base] : d_child[node].to[base];
                        if (node < 0) break;
                    }
                }
                part += left * forms;
            }
            total += has_d ? part : part * empty;
        }
        if (active) out[row * columns] = total;
    }
}
