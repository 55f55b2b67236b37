// Generation probabilities of nucleotide sequences: a thread is one junction.
//
// nt_cpu.py says how, and the order of summation is the same.  Left and Right are made base by base.  Left needs only
// the values of the last step, so it stays in registers; Right is read at many places, and is kept in shared memory,
// [warp][place][lane], where the threads of a warp meet in no bank whichever places they read.  A block has junctions of
// one V-J pair, so its threads go through the same groups, and share the group's table of D forms; they take several
// junctions in turn, since copying the tables takes as long as half a junction.
//
// The host defines structs, which tables.py and nt_cuda.py describe.

#include "../tile.cuh"

constexpr int LANES = 32;  // of a warp

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
    const double *const steps;  // of the chain, in shared memory
    const int root, length;
    Bases<W, FORWARDS> bases;
    int node, q = 0, lag = 0, last = 0;
    // Insertions that began before the last node, and at it: the product of their bases since the node.
    double stepped = 0, begun = 0;
    Values<double> beyond = {};  // of the last node

    __device__ __forceinline__ Side(
        const Junction<W> &junction, const Tries &tries, const Chain &chain, const double *steps, int root)
        : tries(tries), chain(chain), steps(steps), root(root), length(junction.length), bases(junction), node(root)
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
            stepped = steps[4 * last + base];
            begun = chain.first[base] * tries.alone[node];
            beyond = tries.beyond.row(node);
        } else {
            const double step = steps[4 * last + base];
            stepped *= step;
            begun *= step;
        }
        if (++lag >= chain.lengths.rows) return false;
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
    const Groups groups, const Tries v, const Tries j, const Chain vd, const Chain dj,
    const DForms forms,                      // its rows are [tables, 2, ROWS, 2]: of 1 and 2, and of 3 and 4 bases
    const Shared at,
    int columns, double *__restrict__ out)   // [junctions, columns], the column of these values
{
    extern __shared__ __align__(16) u8 shared[];
    const int d_nodes = forms.child.rows, staged = STAGED ? d_nodes : 0;
    const Links *const d_child = (const Links *)forms.child.at, *const longer_forms = (const Links *)forms.longer.at;
    const Two *const short_forms = (const Two *)forms.rows.at;
    Two *const table = (Two *)(shared + at.rows);                        // [2, ROWS]
    Links *const longer_here = (Links *)(shared + at.longer);            // [LONGER / 4]
    double *const vd_here = (double *)(shared + at.vd), *const dj_here = (double *)(shared + at.dj);  // [4, 4]
    double *const weights_here = (double *)(shared + at.weights);        // [d_nodes] if STAGED
    ShortLinks *const child_here = (ShortLinks *)(shared + at.child);    // [d_nodes] if STAGED
    // Of this thread, [places] in steps of a warp.
    double *const right =
        (double *)(shared + at.right) + threadIdx.x / LANES * at.places * LANES + threadIdx.x % LANES;
    const int *const longer = longer_here->to;
    const Tile tile = tiles[blockIdx.x];
    const bool has_d = d_nodes > 1;
    if (threadIdx.x < 16) {
        vd_here[threadIdx.x] = vd.step[threadIdx.x];
        dj_here[threadIdx.x] = dj.step[threadIdx.x];
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
        for (int group = groups.first[tile.pair]; group < groups.first[tile.pair + 1]; group++) {
            const int t = groups.d[group];
            const Values<double> weights = forms.weights.row(t);
            const auto weight = [&](int node) { return STAGED ? weights_here[node] : weights[node]; };
            if (t != loaded) {
                // Nobody reads the last table any more.
                __syncthreads();
                if (has_d)
                    for (int k = threadIdx.x; k < 2 * ROWS; k += blockDim.x) table[k] = short_forms[t * 2 * ROWS + k];
                for (int k = threadIdx.x; k < staged; k += blockDim.x) weights_here[k] = weights[k];
                __syncthreads();
                loaded = t;
            }
            const double empty = weight(0);

            bool reached = false;
            int e = own.length;
            Side<W, false> back(own, j, dj, dj_here, groups.j[group]);
            for (double value; back.next(value);) {
                right[--e * LANES] = value;
                reached |= value > 0 && e > 0;
            }
            while (e > 0) right[--e * LANES] = 0;
            for (int k = 0; k <= ROW_BASES; k++) right[(own.length + k) * LANES] = 0;

            // Most J alleles have no form that fits.
            if (!reached) continue;
            double part = 0;
            Side<W, true> front(own, v, vd, vd_here, groups.v[group]);
            for (double left; front.next(left) && front.q < own.length;) {
                const double *const here = right + front.q * LANES;
                if (left == 0) continue;
                if (!has_d) {
                    part += left * here[0];
                    continue;
                }
                const int code = (int)(front.bases.rest[0] >> (64 - 2 * (ROW_BASES + 1)));
                const Two low = table[code >> 2], high = table[ROWS + (code >> 2)];
                double sum = empty * here[0];
                sum += low.first * here[LANES];
                sum += low.second * here[2 * LANES];
                sum += high.first * here[3 * LANES];
                sum += high.second * here[4 * LANES];
                int node = longer[code];
                if (node >= 0) {
                    Bases<W, true> ahead = front.bases;
                    ahead.skip(ROW_BASES + 1);
                    for (int end = front.q + ROW_BASES + 1;; end++) {
                        sum += weight(node) * right[end * LANES];
                        if (end >= own.length - 1) break;
                        const int base = ahead.next();
                        node = STAGED ? child_here[node].to[base] : forms.child[4 * node + base];
                        if (node < 0) break;
                    }
                }
                part += left * sum;
            }
            total += groups.weight[group] * (has_d ? part : part * empty);
        }
        if (active) out[row * columns] = total;
    }
}
