// Expected counts of the events of recombination: a thread is one junction.
//
// expectation_cpu.py says how; sums have the same order here, except those of steps (see Back).  A junction goes through
// the groups of its pair twice: for its probability, then for the counts, which are divided by it.  Nothing of the size
// [bases, lengths of insertions] is kept: on the way back each insertion is followed once more.  Four nodes of a tree go
// on together, so that what is read and written at a place serves four insertions.
//
// Of a thread, in local memory: what ends after each number of bases of either side (Left, Right), and the posterior
// weights of these.  Each is numbered from its own end of the junction, so that the threads of a warp, which go through
// a side together, are at the same number and meet in the same memory transactions, whatever their lengths are.
//
// A block has junctions of one V-J pair.  It collects the counts of the current group in shared memory, and adds them to
// those of all when the group changes, and at its end.  Counts are integers: no order of adding changes them.
//
// The host defines STEP, the nodes that go on together, PAIRS of bases, and MOST_THREADS of a block, and structs, which
// pgen/tables.py, layout.py and expectation_cuda.py describe; Counted says where the counts of each kind begin.

#include "counting.cuh"

constexpr int WINDOW = BASES_PER_WORD - 1;  // pairs of neighbouring bases in a word

// Counts of nodes: the first `size` are collected in shared memory, those of the others are added to all at once.
struct NodeCounts {
    Counts here;
    int size;
    u64 *there;

    __device__ __forceinline__ void add(int node, u64 value) const
    {
        if (value == 0) return;
        if (node < size)
            here.add(node, value);
        else
            atomicAdd(there + node, value);
    }
};

// A junction's bases from one of its ends, 32 to a word, the first in the most significant bits; zeros after the last.
template <int W>
struct Bases {
    u64 words[W];

    // 32 bases, of which the first is at `place`.
    __device__ __forceinline__ u64 from(unsigned place) const
    {
        const unsigned word = place / BASES_PER_WORD, shift = 2 * (place % BASES_PER_WORD);
        u64 high = 0, low = 0;
        #pragma unroll
        for (unsigned w = 0; w < W; w++) {
            if (w == word) high = words[w];
            if (w == word + 1) low = words[w];
        }
        return shift ? high << shift | low >> (64 - shift) : high;
    }

    // The same read from the other end.
    __device__ __forceinline__ Bases reversed(int length) const
    {
        Bases all, own;
        #pragma unroll
        for (int w = 0; w < W; w++) {
            const u64 bits = __brevll(words[W - 1 - w]), odd = 0x5555555555555555ull;
            all.words[w] = (bits & odd) << 1 | (bits >> 1 & odd);
        }
        #pragma unroll
        for (int w = 0; w < W; w++) own.words[w] = all.from((W + w) * BASES_PER_WORD - length);
        return own;
    }
};

// The base, or pair of bases, that is `place` after the first of 32.
__device__ __forceinline__ int base_at(u64 bases, int place) { return (int)(bases >> (62 - 2 * place) & 3); }
__device__ __forceinline__ int pair_at(u64 bases, int place) { return (int)(bases >> (60 - 2 * place) & 15); }

// The tree of one side of a group.
struct Tree {
    Values<int> child;     // [nodes, 4]
    Values<double> alone;  // [nodes]
    int root;
};

// Four nodes, each the child of the one before; those that there are not have the weight 0.
struct Nodes {
    int node[STEP];
    double weight[STEP];
    bool complete = true, weighs = false;

    // After `node`, which the bases `ahead` follow, of which there are `rest`.
    __device__ __forceinline__ Nodes(const Tree &tree, int parent, u64 ahead, int rest)
    {
        #pragma unroll
        for (int i = 0; i < STEP; i++) {
            const int following = complete && i < rest ? tree.child[4 * parent + base_at(ahead, i)] : -1;
            complete &= following >= 0;
            node[i] = parent = following;
            weight[i] = complete ? tree.alone[following] : 0;
            weighs |= weight[i] > 0;
        }
    }
};

// The weights of all forms and insertions that end after 0 … length bases into `out`; whether a base follows the tree.
template <int W>
__device__ __forceinline__ bool forward(
    const Bases<W> &bases, int length, const Tree &tree, const Chain &chain, double *out)
{
    for (int q = 0; q <= length; q++) out[q] = 0;
    bool reached = false, more = true;
    for (int begun = 0, node = tree.root; more; begun += STEP) {
        const u64 ahead = bases.from(begun);
        const Nodes own(tree, node, ahead, length - begun);
        reached |= own.node[0] >= 0;
        more = own.complete;
        node = own.node[STEP - 1];
        if (!own.weighs) continue;
        double inserted[STEP];
        #pragma unroll
        for (int j = 0; j <= STEP; j++) {
            const int q = begun + 1 + j;
            #pragma unroll
            for (int i = 0; i < j - 1; i++) inserted[i] *= chain.step[pair_at(ahead, j - 1)];
            if (j) inserted[j - 1] = own.weight[j - 1] * chain.first[base_at(ahead, j)];
            if (q > length) continue;
            double sum = out[q];
            #pragma unroll
            for (int i = 0; i < j; i++) sum += inserted[i] * chain.lengths[j - i];
            if (j < STEP) sum += own.weight[j] * chain.lengths[0];
            out[q] = sum;
        }
        double times[STEP];
        #pragma unroll
        for (int i = 0; i < STEP; i++) times[i] = chain.lengths[STEP - i];
        const int last = min(length, begun + STEP + chain.lags - 1);
        for (int q = begun + STEP + 2; q <= last;) {
            u64 pairs = bases.from(q - 2);
            for (const int stop = min(last, q + WINDOW - 1); q <= stop; q++, pairs <<= 2) {
                const double step = chain.step[pairs >> 60];
                double sum = out[q];
                #pragma unroll
                for (int i = STEP - 1; i > 0; i--) times[i] = times[i - 1];
                times[0] = chain.lengths[q - 1 - begun];
                #pragma unroll
                for (int i = 0; i < STEP; i++) {
                    inserted[i] *= step;
                    sum += inserted[i] * times[i];
                }
                out[q] = sum;
            }
        }
    }
    return reached;
}

// What a junction's side adds to counts of insertions, before it is rounded.
struct Inserted {
    double *lengths;  // [lags]
    double first[4];
    double *steps;  // [PAIRS], blockDim.x apart
};

// Add the counts of a side; bar[q] is the posterior weight of what ends after q bases, over out[q].
//
// bar  zero for STEP - 1 places after the last base
template <int W>
__device__ __forceinline__ void back(
    const Bases<W> &bases, int length, const Tree &tree, const Chain &chain, const double *out, const double *bar,
    const Scale &scale, const NodeCounts &at_nodes, Inserted &at)
{
    // Of the insertions that have begun before base k and go on after it, and of those that began at the last one.
    double covering = 0, beginning = 0;
    const auto step_to = [&](int pair, double ending) {
        covering += beginning - ending;
        at.steps[pair * blockDim.x] += max(covering, 0.0);
    };
    int begun = 0;
    bool more = true;
    for (int node = tree.root; more; begun += STEP) {
        const u64 ahead = bases.from(begun);
        const Nodes own(tree, node, ahead, length - begun);
        more = own.complete;
        node = own.node[STEP - 1];
        double total[STEP] = {}, begins[STEP] = {};
        if (own.weighs) {
            double inserted[STEP], steps[STEP], bars[STEP];
            double sum = at.lengths[0];
            #pragma unroll
            for (int i = 0; i < STEP; i++) {
                bars[i] = bar[begun + 1 + i];
                total[i] = own.weight[i] * chain.lengths[0] * bars[i];
                sum += total[i];
                inserted[i] = own.weight[i] * chain.first[base_at(ahead, 1 + i)];
                steps[i] = chain.step[pair_at(ahead, i)];
            }
            at.lengths[0] = sum;
            const int most = min(chain.lags - 1, length - begun - 1);
            for (int t = 1; t <= most;) {
                u64 pairs = bases.from(begun + STEP - 1 + t);
                for (const int stop = min(most, t + WINDOW - 1); t <= stop; t++, pairs <<= 2) {
                    const double chance = chain.lengths[t];
                    sum = at.lengths[t];
                    #pragma unroll
                    for (int i = 0; i < STEP; i++) {
                        bars[i] = i < STEP - 1 ? bars[i + 1] : bar[begun + STEP + t];
                        steps[i] = i < STEP - 1 ? steps[i + 1] : chain.step[pairs >> 60];
                        const double z = inserted[i] * chance * bars[i];
                        begins[i] += z;
                        sum += z;
                        inserted[i] *= steps[i];
                    }
                    at.lengths[t] = sum;
                }
            }
        }
        #pragma unroll
        for (int i = 0; i < STEP; i++) {
            const int k = begun + 1 + i, base = base_at(ahead, 1 + i);
            if (own.weight[i] > 0) at_nodes.add(own.node[i] - tree.root, scale(total[i] + begins[i]));
            #pragma unroll
            for (int code = 0; code < 4; code++) at.first[code] += code == base ? begins[i] : 0;
            if (k < length) step_to(pair_at(ahead, i), bar[k] * (out[k] - own.weight[i] * chain.lengths[0]));
            beginning = begins[i];
        }
    }
    const int last = min(length - 1, begun + chain.lags - 1);
    for (int k = begun + 1; k <= last;) {
        u64 pairs = bases.from(k - 1);
        for (const int stop = min(last, k + WINDOW - 1); k <= stop; k++, pairs <<= 2) {
            step_to((int)(pairs >> 60), bar[k] * out[k]);
            beginning = 0;
        }
    }
}

// The D forms: the first `here` are in shared memory too.
struct Forms {
    const double *weights_here;
    Values<double> weights;
    const int *child_here;  // [here, 4]
    Values<int> child;      // [nodes, 4]
    int here;

    __device__ __forceinline__ double weight(int node) const { return node < here ? weights_here[node] : weights[node]; }
    __device__ __forceinline__ int next(int node, int base) const
    {
        return node < here ? child_here[4 * node + base] : child[4 * node + base];
    }

    // Call `work(node, bases that follow the form)` for each form that begins before the last `rest` bases, and leaves
    // one of them at least.
    template <int W, typename Work>
    __device__ __forceinline__ void walk(const Bases<W> &bases, int length, int rest, const Work &work) const
    {
        u64 ahead = 0;
        int node = 0;
        for (int taken = 0;; taken++) {
            work(node, rest - taken);
            if (rest - taken <= 1) return;
            if (taken % BASES_PER_WORD == 0) ahead = bases.from(length - rest + taken);
            node = next(node, (int)(ahead >> 62));
            ahead <<= 2;
            if (node < 0) return;
        }
    }
};

template <int W>
__global__ void __launch_bounds__(MOST_THREADS) expectation(
    const u64 *__restrict__ words,        // [junctions, words_apart]
    int words_apart,
    const u8 *__restrict__ lengths,       // [junctions]
    const u32 *__restrict__ row_weights,  // [junctions]
    const Tile *__restrict__ tiles,       // [gridDim.x]
    const Groups groups, const TreeSizes sizes, const Trees trees, const NodeWeights weights, const Insertion vd_there,
    const Insertion dj_there,
    const Here here,                      // nodes of trees, or of a table, whose counts are in shared memory
    const Counted at, const Shared parts,
    double unit, double log_unit, double least,
    int longest,                          // bases of any of the junctions
    u64 *__restrict__ out)                // the counts
{
    constexpr int MOST = W * BASES_PER_WORD;
    const int of_insertions = at.logs - at.vd_lengths;
    extern __shared__ __align__(16) u8 shared[];
    double *const weights_here = (double *)(shared + parts.weights);  // [here.d]
    int *const child_here = (int *)(shared + parts.child);            // [here.d, 4]
    const Counts v_counts = {(u32 *)(shared + parts.v)}, j_counts = {(u32 *)(shared + parts.j)};
    const Counts d_counts = {(u32 *)(shared + parts.d)}, counts = {(u32 *)(shared + parts.insertions)};

    const Chain vd = copied(vd_there, shared + parts.vd, STEP), dj = copied(dj_there, shared + parts.dj, STEP);
    const InsertionPlaces vd_places = {0, at.vd_first - at.vd_lengths, at.vd_steps - at.vd_lengths};
    const InsertionPlaces dj_places = {
        at.dj_lengths - at.vd_lengths, at.dj_first - at.vd_lengths, at.dj_steps - at.vd_lengths};
    for (int k = threadIdx.x; k < 4 * here.d; k += blockDim.x) child_here[k] = trees.d[k];
    for (int k = threadIdx.x; k < (parts.steps - parts.v) / (int)sizeof(u32); k += blockDim.x) v_counts.halves[k] = 0;

    const Tile tile = tiles[blockIdx.x];
    const int begin_group = groups.first[tile.pair], end_group = groups.first[tile.pair + 1];
    const int lane = threadIdx.x % LANES;
    int loaded = -1, counted = -1;  // the table whose weights, and the group whose counts are in shared memory
    u64 logs[2] = {}, lost[2] = {};
    double left[MOST + STEP], right[MOST + STEP], left_bar[MOST + STEP], right_bar[MOST + STEP], by_length[MOST + 1];
    Inserted inserted = {by_length, {}, (double *)(shared + parts.steps) + threadIdx.x};  // [PAIRS, blockDim.x]

    // All threads: add the counts of the group to those of all.
    const auto flush = [&]() {
        if (counted < 0) return;
        v_counts.flush(min(here.v, sizes.v[counted]), out + at.v + groups.v[counted]);
        j_counts.flush(min(here.j, sizes.j[counted]), out + at.j + groups.j[counted]);
        d_counts.flush(here.d, out + at.d + (i64)groups.d[counted] * trees.d.rows);
    };

    for (int begin = 0; begin < tile.rows; begin += blockDim.x) {
        const bool active = begin + threadIdx.x < tile.rows;
        const i64 row = tile.row + (active ? begin + threadIdx.x : 0);
        const int length = active ? lengths[row] : 0;
        const u32 times = active ? row_weights[row] : 0;
        Bases<W> front;
        #pragma unroll
        for (int w = 0; w < W; w++) front.words[w] = words[row * words_apart + w];
        const Bases<W> rear = front.reversed(length);

        double total = 0, over = 0;
        const Scale scale = {unit, times};
        int left_of = -1, right_of = -1;  // what Left and Right are those of: a root, and a group
        bool ends = false;                // whether a J form, however short, ends the junction

        // The counts of a side: of nodes into `nodes`, and of insertions; all threads of a warp.
        const auto count_side = [&](bool own, const Bases<W> &bases, const Tree &tree, const Chain &chain,
                                    const double *value, const double *bar, const NodeCounts &nodes,
                                    const InsertionPlaces &places) {
            if (!__ballot_sync(ALL, own)) return;
            const int lags = min(chain.lags, longest);
            for (int t = 0; t < lags; t++) by_length[t] = 0;
            for (int k = 0; k < 4; k++) inserted.first[k] = 0;
            for (int k = 0; k < PAIRS; k++) inserted.steps[k * blockDim.x] = 0;
            if (own) back(bases, length, tree, chain, value, bar, scale, nodes, inserted);
            const auto collect = [&](double weight, int place) {
                const u64 sum = warp_sum(scale(weight));
                if (lane == 0 && sum) counts.add(place, sum);
            };
            for (int t = 0; t < lags; t++) collect(by_length[t], places.lengths + t);
            #pragma unroll
            for (int k = 0; k < 4; k++) collect(inserted.first[k], places.first + k);
            for (int k = 0; k < PAIRS; k++) collect(inserted.steps[k * blockDim.x], places.steps + k);
        };

        for (int turn = 0; turn < 2; turn++) {
            const bool counting = turn == 1;
            const bool own = counting ? times > 0 && total >= least : length > 0;
            bool in_run = false;  // whether the junction has counts of the current root of V
            for (int group = begin_group; group < end_group; group++) {
                const int table = groups.d[group];
                const Tree v = {trees.v, weights.v, groups.v[group]}, j = {trees.j, weights.j, groups.j[group]};
                const Forms forms = {weights_here, weights.d.row(table), child_here, trees.d, here.d};
                if (table != loaded || (counting && group != counted)) {
                    // Nobody needs the last table, or adds to the counts of the last group, any more.
                    __syncthreads();
                    if (table != loaded)
                        for (int k = threadIdx.x; k < here.d; k += blockDim.x) weights_here[k] = forms.weights[k];
                    loaded = table;
                    if (counting) {
                        flush();
                        counted = group;
                    }
                    __syncthreads();
                }
                if (own && right_of != group) {
                    ends = forward(rear, length, j, dj, right);
                    right_of = group;
                }
                if (own && ends && left_of != v.root) {
                    forward(front, length, v, vd, left);
                    left_of = v.root;
                }
                const bool fits = own && ends;
                if (!counting) {
                    double probability = 0;
                    // Threads begin D forms at the same distance from the end of J, whose numbers they then share.
                    for (int rest = longest - 1; rest > 0 && fits; rest--) {
                        const double before = rest < length ? left[length - rest] : 0;
                        if (before == 0) continue;
                        double part = 0;
                        forms.walk(front, length, rest, [&](int node, int q) { part += forms.weight(node) * right[q]; });
                        probability += before * part;
                    }
                    total += probability;
                    continue;
                }

                if (group == begin_group || groups.v[group - 1] != v.root) {
                    in_run = false;
                    for (int q = 0; q < length + STEP && own; q++) left_bar[q] = 0;
                }
                in_run |= fits;
                const NodeCounts at_forms = {d_counts, here.d, out + at.d + (i64)table * trees.d.rows};
                u64 empty = 0;  // of the form of no bases, which every junction has everywhere
                for (int q = 0; q < length + STEP && fits; q++) right_bar[q] = 0;
                for (int rest = longest - 1; rest > 0 && fits; rest--) {
                    const double before = rest < length ? left[length - rest] : 0;
                    if (before == 0) continue;
                    const double posterior = before * over;
                    double part = 0;
                    forms.walk(front, length, rest, [&](int node, int q) {
                        const double weight = forms.weight(node), after = right[q], begun = posterior * weight;
                        part += weight * after;
                        right_bar[q] += begun;
                        const u64 value = scale(begun * after);
                        if (node == 0)
                            empty += value;
                        else
                            at_forms.add(node, value);
                    });
                    left_bar[length - rest] += part;
                }
                empty = warp_sum(empty);
                if (lane == 0) at_forms.add(0, empty);
                count_side(
                    fits, rear, j, dj, right, right_bar, {j_counts, here.j, out + at.j + j.root}, dj_places);
                if (group + 1 == end_group || groups.v[group + 1] != v.root) {
                    for (int q = 0; q <= length && in_run; q++) left_bar[q] *= over;
                    count_side(
                        in_run, front, v, vd, left, left_bar, {v_counts, here.v, out + at.v + v.root}, vd_places);
                }
            }
            if (!counting && active) {
                const int held = times == 0;
                const u64 often = held ? 1 : times;
                logs[held] += (u64)(i64)(-log(max(total, least)) * log_unit + 0.5) * often;
                if (total < least) lost[held] += often;
                over = 1 / total;
            }
        }
    }
    __syncthreads();
    flush();
    counts.flush(of_insertions, out + at.vd_lengths);
    #pragma unroll
    for (int held = 0; held < 2; held++) {
        const u64 log_sum = warp_sum(logs[held]), lost_sum = warp_sum(lost[held]);
        if (lane == 0 && log_sum) atomicAdd(out + at.logs + held, log_sum);
        if (lane == 0 && lost_sum) atomicAdd(out + at.lost + held, lost_sum);
    }
}
