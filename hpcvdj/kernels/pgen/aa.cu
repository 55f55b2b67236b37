// Generation probabilities of amino-acid sequences: four lanes are one sequence, each a component of its weights.
//
// codons.py says what the components mean, aa_cpu.py how the sum is made.  Here a codon is a step: Left goes through the
// codons from V, and what the D forms need of it is at most two codons old, so only Right is kept, in shared memory,
// with the last bases of insertions that can still go on.  A lane reads and writes its own component of both; where a
// weight goes through a 4 x 4 table, the lanes tell each other their components by shuffles.  Where many junctions have
// several groups of one V, Left is kept too, and made once.  The lanes of a sequence
// run together, those of other sequences of the warp need not.
//
// A Number is a double; or a value with its derivative by the weight of codons of any residue, in all positions, which
// is the sum over sequences with one mismatch.

#include "../tile.cuh"

constexpr int COMPONENTS = 4, MOST_CODONS = 42, CODONS = 64;

// Right has one weight where a codon begins, and 4 after each of its first two bases.
constexpr int OF_CODON = 1 + 2 * COMPONENTS;

struct __align__(16) Dual {
    double value, derivative;
};

__device__ __forceinline__ Dual operator+(Dual a, Dual b)
{
    return {a.value + b.value, a.derivative + b.derivative};
}

__device__ __forceinline__ Dual operator*(Dual a, double b)
{
    return {a.value * b, a.derivative * b};
}

__device__ __forceinline__ Dual operator*(Dual a, Dual b)
{
    return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
}

template <typename Factor>
__device__ __forceinline__ void add(double &sum, double a, Factor b)
{
    sum += a * b;
}

template <typename Factor>
__device__ __forceinline__ void add(Dual &sum, Dual a, Factor b)
{
    sum = sum + a * b;
}

__device__ __forceinline__ bool is_zero(double a)
{
    return a == 0;
}

__device__ __forceinline__ bool is_zero(Dual a)
{
    return a.value == 0 && a.derivative == 0;
}

// The four lanes of a sequence.
struct Lanes {
    u32 mask;
    int own;

    __device__ __forceinline__ Lanes() : mask(0xfu << (threadIdx.x & 28)), own(threadIdx.x & 3) {}

    __device__ __forceinline__ double of(double a, int lane) const
    {
        return __shfl_sync(mask, a, lane, COMPONENTS);
    }

    __device__ __forceinline__ Dual of(Dual a, int lane) const
    {
        return {of(a.value, lane), of(a.derivative, lane)};
    }

    // In the same order on each lane.
    template <typename Number>
    __device__ __forceinline__ Number sum(Number a) const
    {
        return (of(a, 0) + of(a, 1)) + (of(a, 2) + of(a, 3));
    }

    // The own component of a weight after a 4 x 4 table.
    template <typename Number, typename Factor>
    __device__ __forceinline__ Number through(Number a, const Factor *table) const
    {
        Number sum = of(a, 0) * table[own];
        #pragma unroll
        for (int c = 1; c < COMPONENTS; c++) add(sum, of(a, c), table[COMPONENTS * c + own]);
        return sum;
    }

    __device__ __forceinline__ void wait() const { __syncwarp(mask); }
};

// A node of a prefix tree; the nodes of a tree are in preorder.
struct __align__(16) Node {
    double alone;  // weight of the texts' prefixes that end here
    int skip;      // the first node behind those that this one begins
    short depth;
    short bases;   // its last three bases
};

// What a side needs: its trees of segments, its insertion, and how this goes through codons; see CodonSteps.
template <typename Number>
struct Steps {
    const Node *nodes;
    const double *lengths, *first, *one;
    const Number *two, *whole, *first_two, *first_whole, *rest_two, *rest_whole, *fits;
    const u32 *pairs;  // [symbols] by bits: the first two bases of any codon
    int lags;
};

// The weights of the codons before each codon of a text.  All that fit have 1, if there is no derivative.
template <typename Number>
struct Before;

template <>
struct Before<double> {
    __device__ __forceinline__ double operator[](int) const { return 1.0; }
    __device__ __forceinline__ void set(int, double) {}
};

template <>
struct Before<Dual> {
    Dual weights[MOST_CODONS + 1];
    __device__ __forceinline__ Before() { weights[0] = {1.0, 0.0}; }
    __device__ __forceinline__ Dual operator[](int codon) const { return weights[codon]; }
    __device__ __forceinline__ void set(int codon, Dual weight) { weights[codon] = weight; }
};

// The own component of the weights of segments alone that end after q bases into out[4 q], q = 0 … rows - 1; the
// largest q with a weight.
template <bool FORWARDS, typename Number>
__device__ __forceinline__ int segments(
    const Steps<Number> &steps, int root, const u8 *symbols, int codons, int own, int rows, Number *out)
{
    Before<Number> before;
    for (int q = 0; q < rows; q++) out[COMPONENTS * q] = Number{};
    int most = 0;
    const int stop = steps.nodes[root].skip;
    for (int at = root + 1; at < stop;) {
        const Node node = steps.nodes[at];
        const int codon = (node.depth - 1) / 3, phase = node.depth - 1 - 3 * codon;
        bool fits = node.depth <= 3 * codons;
        if (fits) {
            const int symbol = symbols[FORWARDS ? codon : codons - 1 - codon];
            const Number weight = before[codon];
            Number &sum = out[COMPONENTS * node.depth];
            if (phase == 0) {
                if ((node.bases & 3) == own) add(sum, weight, node.alone);
            } else if (phase == 1) {
                const int pair = node.bases & 15;
                fits = steps.pairs[symbol] >> pair & 1;
                if (fits) add(sum, weight * steps.fits[CODONS * symbol + COMPONENTS * pair + own], node.alone);
            } else {
                // Two mismatches are too many.
                const Number longer = weight * steps.fits[CODONS * symbol + node.bases];
                fits = !is_zero(longer);
                before.set(codon + 1, longer);
                if (fits && own == 0) add(sum, longer, node.alone);
            }
        }
        if (fits && node.alone > 0) most = max(most, (int)node.depth);
        at = fits ? at + 1 : node.skip;
    }
    return most;
}

// Weights where a codon begins, the same on all lanes, and after its first and its second base.
template <typename Number>
struct Weights {
    Number none, one, two;
};

// Segments with an insertion after them, codon by codon.
template <typename Number>
struct Insertions {
    const Steps<Number> &steps;
    const Lanes &lanes;
    // [q]: segments that end after q bases; then the weight by last base of an insertion that began there and has come
    // to the end of a codon, without the probability of its length.  The own component of each.
    Number *const last;
    const int most;
    // The lanes' parts of the weight where the next codon begins.
    Number edge = {};

    __device__ __forceinline__ Insertions(const Steps<Number> &steps, const Lanes &lanes, Number *last, int most)
        : steps(steps), lanes(lanes), last(last), most(most)
    {
    }

    __device__ __forceinline__ Weights<Number> next(int codon, int symbol)
    {
        const int q = 3 * codon, lags = steps.lags, c = lanes.own;
        const double *const lengths = steps.lengths;
        const int table = COMPONENTS * COMPONENTS * symbol, row = COMPONENTS * symbol + c;
        Weights<Number> made = {lanes.sum(edge), Number{}, Number{}};
        edge = Number{};
        // Insertions that began before this codon: added up first, stepped once.
        const int begin = max(1, q + 2 - lags), stop = min(q - 1, most) + 1;
        if (begin < stop) {
            Number one = {}, two = {};
            for (int p = begin; p < stop; p++) {
                Number &own = last[COMPONENTS * p];
                const Number before = own;
                add(one, before, lengths[q + 1 - p]);
                if (q + 2 - p < lags) add(two, before, lengths[q + 2 - p]);
                if (q + 3 - p < lags) {
                    own = lanes.through(before, steps.whole + table);
                    add(edge, own, lengths[q + 3 - p]);
                }
            }
            made.one = lanes.through(one, steps.one);
            made.two = lanes.through(two, steps.two + table);
        }
        if (0 < q && q <= most) {
            const Number weight = lanes.of(last[COMPONENTS * q], 0), own = weight * steps.first_whole[row];
            add(made.none, weight, lengths[0]);
            last[COMPONENTS * q] = own;
            if (lags > 1) add(made.one, weight, lengths[1] * steps.first[c]);
            if (lags > 2) add(made.two, weight * steps.first_two[row], lengths[2]);
            if (lags > 3) add(edge, own, lengths[3]);
        }
        if (q + 1 <= most) {
            const Number weight = last[COMPONENTS * (q + 1)], own = lanes.through(weight, steps.rest_whole + table);
            add(made.one, weight, lengths[0]);
            last[COMPONENTS * (q + 1)] = own;
            if (lags > 1) add(made.two, lanes.through(weight, steps.rest_two + table), lengths[1]);
            if (lags > 2) add(edge, own, lengths[2]);
        }
        if (q + 2 <= most) {
            const Number weight = last[COMPONENTS * (q + 2)], own = weight * steps.first[c];
            add(made.two, weight, lengths[0]);
            last[COMPONENTS * (q + 2)] = own;
            if (lags > 1) add(edge, own, lengths[1]);
        }
        return made;
    }
};

// D forms against codons, of one table of D genes; see CodonForms.
template <typename Number>
struct Forms {
    double empty;
    const double *single, *both;
    const Number *ends_two, *one_two, *one_three, *one_one, *two_two, *one_over_two;
    const u8 *code;
    const int *begin, *end, *found, *of_symbol;
    const double *chance;
    int symbols, places, ends;
};

// Forms that begin at a place and end after a whole codon, or one or two bases later.
template <typename Number>
__device__ __forceinline__ Number ending(
    const double *chance, Number after_none, Number after_one, Number after_two)
{
    Number sum = after_none * chance[0];
    add(sum, after_one, chance[1]);
    add(sum, after_two, chance[2]);
    return sum;
}

// Forms of which a codon is the first whole one; the places of D are split among the lanes.
//
// left   where the codon begins
// older  the weights within the codon before, [2, 4]
// right  from the codon's beginning
template <typename Number>
__device__ __forceinline__ Number whole_codons(
    const Forms<Number> &forms, const Number *fits, const u8 *symbols, int codon, int codons, int lane, Number left,
    const Number *older, const Number *right)
{
    Number total = {};
    const int symbol = symbols[codon];
    for (int which = forms.of_symbol[symbol] + lane; which < forms.of_symbol[symbol + 1]; which += COMPONENTS) {
        const int place = forms.found[which], begin = forms.begin[place], end = forms.end[place];
        const u8 *const code = forms.code + place;
        Number before_one = {}, before_two = {};
        if (codon > 0 && place > begin) {
            before_one = older[COMPONENTS + code[-1]];
            if (place - 1 > begin)
                for (int c = 0; c < COMPONENTS; c++)
                    add(before_two, older[c],
                        fits[CODONS * symbols[codon - 1] + 16 * c + COMPONENTS * code[-2] + code[-1]]);
        }
        const bool none = is_zero(left), no_one = is_zero(before_one), no_two = is_zero(before_two);
        if (none && no_one && no_two) continue;
        Number weight = fits[CODONS * symbol + 16 * code[0] + 4 * code[1] + code[2]];
        int stop = 3;
        for (int last = codon; ; last++) {
            const Number *const after = right + OF_CODON * (last + 1 - codon);
            const int rest = end - place - stop;
            Number after_one = {}, after_two = {};
            if (last + 1 < codons && rest > 0) {
                after_one = after[1 + code[stop]];
                if (rest > 1) {
                    const int pair = 4 * code[stop] + code[stop + 1];
                    const Number *const allowed = fits + CODONS * symbols[last + 1] + COMPONENTS * pair;
                    for (int c = 0; c < COMPONENTS; c++) add(after_two, after[1 + COMPONENTS + c], allowed[c]);
                }
            }
            const double *const chance = forms.chance + (i64)place * forms.ends + place + stop - begin;
            Number sum = left * ending(chance, after[0], after_one, after_two);
            if (!no_one) add(sum, before_one, ending(chance - forms.ends, after[0], after_one, after_two));
            if (!no_two) add(sum, before_two, ending(chance - 2 * forms.ends, after[0], after_one, after_two));
            add(total, weight, sum);
            if (last + 1 >= codons || rest < 3) break;
            weight = weight * fits[CODONS * symbols[last + 1] + 16 * code[stop] + 4 * code[stop + 1] + code[stop + 2]];
            if (is_zero(weight)) break;
            stop += 3;
        }
    }
    return total;
}

// A lane's part of: left x D forms that begin in a codon, or have it as their first whole one, x right.
template <typename Number>
__device__ __forceinline__ Number middle(
    const Forms<Number> &forms, const Number *fits, const u8 *symbols, int codon, int codons, int lane,
    const Weights<Number> &left, const Number *older, const Number *right)
{
    const Number *const one = right + 1, *const two = one + COMPONENTS;
    Number none = one[lane] * left.one;
    add(none, two[lane], left.two);
    if (lane == 0) add(none, left.none, right[0]);
    Number part = none * forms.empty;
    if (forms.places == 0) return part;
    const int symbol = symbols[codon], row = COMPONENTS * symbol + lane;
    Number begun = one[lane] * forms.single[lane];
    add(begun, two[lane], forms.ends_two[row]);
    add(part, left.none, begun);
    Number ended = left.one * forms.one_three[row];
    add(ended, left.two, forms.single[lane]);
    add(part, right[OF_CODON], ended);
    Number after_one = {}, after_two = {};
    for (int c = 0; c < COMPONENTS; c++) add(after_one, two[c], forms.one_two[COMPONENTS * row + c]);
    if (codon + 1 < codons) {
        const Number *const next_one = one + OF_CODON, *const next_two = two + OF_CODON;
        const int next = symbols[codon + 1];
        const Number *const over = forms.one_over_two + COMPONENTS * (COMPONENTS * (forms.symbols * symbol + next) + lane);
        for (int c = 0; c < COMPONENTS; c++) {
            add(after_one, next_one[c], forms.one_one[COMPONENTS * row + c]);
            add(after_one, next_two[c], over[c]);
            add(after_two, next_one[c], forms.both[COMPONENTS * lane + c]);
            add(after_two, next_two[c], forms.two_two[COMPONENTS * (COMPONENTS * next + lane) + c]);
        }
    }
    add(part, left.one, after_one);
    add(part, left.two, after_two);
    return part + whole_codons(forms, fits, symbols, codon, codons, lane, left.none, older, right);
}

// Numbers in shared memory for a sequence: Right, the rows of insertions; all of Left, or two weights of two codons.
// The sequences of a warp begin in different banks.
__device__ __forceinline__ int numbers_of(int most_codons, int rows, bool keep)
{
    const int left = keep ? OF_CODON * most_codons : 4 * COMPONENTS;
    return (OF_CODON * most_codons + 1 + left + COMPONENTS * rows + 7) / 8 * 8 + 4;
}

__device__ __forceinline__ double result(double total, int)
{
    return total;
}

// Each of the sums over the position of a residue has the sequence itself.
__device__ __forceinline__ double result(Dual total, int residues)
{
    const double ball = total.derivative - (residues - 1) * total.value;
    return ball < 0x1p-500 ? 0.0 : ball;
}

template <int W, typename Number>
__global__ void __launch_bounds__(MOST_THREADS) amino_acids(
    const u64 *__restrict__ words,   // [junctions, W]
    const u8 *__restrict__ lengths,  // [junctions]
    const int *__restrict__ rows,    // junctions to compute, in frame, grouped by pair
    const Tile *__restrict__ tiles,  // [gridDim.x], of `rows`
    const int *__restrict__ first_group, const int *__restrict__ group_v, const int *__restrict__ group_j,
    const int *__restrict__ group_d,
    const u8 *__restrict__ of_codon,  // [64] the symbol of each
    const Node *__restrict__ v_nodes, const double *__restrict__ v_lengths, const double *__restrict__ v_first,
    const double *__restrict__ v_one, const Number *__restrict__ v_two, const Number *__restrict__ v_whole,
    const Number *__restrict__ v_first_two, const Number *__restrict__ v_first_whole,
    const Number *__restrict__ v_rest_two, const Number *__restrict__ v_rest_whole, const Number *__restrict__ v_fits,
    const u32 *__restrict__ v_pairs, int v_lags,
    const Node *__restrict__ j_nodes, const double *__restrict__ j_lengths, const double *__restrict__ j_first,
    const double *__restrict__ j_one, const Number *__restrict__ j_two, const Number *__restrict__ j_whole,
    const Number *__restrict__ j_first_two, const Number *__restrict__ j_first_whole,
    const Number *__restrict__ j_rest_two, const Number *__restrict__ j_rest_whole, const Number *__restrict__ j_fits,
    const u32 *__restrict__ j_pairs, int j_lags,
    const double *__restrict__ empty, const double *__restrict__ single, const double *__restrict__ both,
    const Number *__restrict__ ends_two, const Number *__restrict__ one_two, const Number *__restrict__ one_three,
    const Number *__restrict__ one_one, const Number *__restrict__ two_two, const Number *__restrict__ one_over_two,
    const u8 *__restrict__ code, const int *__restrict__ begin, const int *__restrict__ end,
    const int *__restrict__ found, const int *__restrict__ of_symbol, const double *__restrict__ chance,
    int symbols, int places, int ends,
    int reach,                              // bases of the longest segment
    bool keep,                              // all of Left
    int longest,                            // bases of any of the junctions
    int columns, double *__restrict__ out)  // [junctions, columns], the column of these values
{
    extern __shared__ __align__(16) u8 shared[];
    const int most_codons = longest / 3, scratch_rows = min(reach, 3 * most_codons) + 1;
    const int numbers = numbers_of(most_codons, scratch_rows, keep);
    const int slot = threadIdx.x / COMPONENTS, slots = blockDim.x / COMPONENTS;
    Number *const right = (Number *)shared + numbers * slot;               // [9 codons + 1]
    Number *const kept = right + OF_CODON * most_codons + 1;               // [9 codons] if `keep`, else [2, 2, 4]
    const Lanes lanes;
    const int lane = lanes.own;
    Number *const last = kept + (keep ? OF_CODON * most_codons : 4 * COMPONENTS) + lane;  // [scratch_rows, 4]
    u8 *const text = (u8 *)((Number *)shared + numbers * slots) + most_codons * slot;  // [codons]

    const Tile tile = tiles[blockIdx.x];
    if (slot >= tile.rows) return;
    const i64 row = rows[tile.row + slot];
    const int codons = lengths[row] / 3;
    for (int k = lane; k < codons; k += COMPONENTS) {
        int bases = 0;
        for (int place = 3 * k; place < 3 * k + 3; place++)
            bases = bases << 2 | ((int)(words[row * W + place / BASES_PER_WORD] >> (62 - 2 * (place & 31))) & 3);
        text[k] = of_codon[bases];
    }
    const Steps<Number> v = {
        v_nodes, v_lengths, v_first, v_one, v_two, v_whole, v_first_two, v_first_whole, v_rest_two, v_rest_whole,
        v_fits, v_pairs, v_lags};
    const Steps<Number> j = {
        j_nodes, j_lengths, j_first, j_one, j_two, j_whole, j_first_two, j_first_whole, j_rest_two, j_rest_whole,
        j_fits, j_pairs, j_lags};
    const int used_rows = min(scratch_rows, 3 * codons + 1);
    Number total = {};
    int root = -1, most_v = 0;
    for (int group = first_group[tile.pair]; group < first_group[tile.pair + 1]; group++) {
        // The text is written; nobody reads the last group's Right any more.
        lanes.wait();
        const int most = segments<false>(j, group_j[group], text, codons, lane, used_rows, last);
        if (most == 0) continue;
        Insertions<Number> back(j, lanes, last, most);
        for (int k = codons - 1; k >= 0; k--) {
            const Weights<Number> made = back.next(codons - 1 - k, text[k]);
            Number *const here = right + OF_CODON * k;
            if (lane == 0) here[OF_CODON] = made.none;
            here[1 + COMPONENTS + lane] = made.one;
            here[1 + lane] = made.two;
        }
        if (lane == 0) right[0] = Number{};
        const bool made = keep && group_v[group] == root;
        if (!made) {
            root = group_v[group];
            most_v = segments<true>(v, root, text, codons, lane, used_rows, last);
        }
        if (most_v == 0) continue;
        // Right is written.
        lanes.wait();
        const i64 t = group_d[group], all = symbols, squares = COMPONENTS * COMPONENTS;
        const Forms<Number> forms = {
            empty[t], single + t * COMPONENTS, both + t * squares, ends_two + t * all * COMPONENTS,
            one_two + t * all * squares, one_three + t * all * COMPONENTS, one_one + t * all * squares,
            two_two + t * all * squares, one_over_two + t * all * all * squares, code, begin, end, found, of_symbol,
            chance + t * places * ends, symbols, places, ends};
        Insertions<Number> front(v, lanes, last, most_v);
        for (int k = 0; k < codons; k++) {
            Number *const now = keep ? kept + OF_CODON * k + 1 : kept + 2 * COMPONENTS * (k & 1);
            const Number *const older = keep ? now - OF_CODON : kept + 2 * COMPONENTS * (~k & 1);
            Weights<Number> left;
            if (made) {
                left = {now[-1], now[lane], now[COMPONENTS + lane]};
            } else {
                left = front.next(k, text[k]);
                if (keep && lane == 0) now[-1] = left.none;
                now[lane] = left.one;
                now[COMPONENTS + lane] = left.two;
            }
            total = total + middle(forms, v.fits, text, k, codons, lane, left, older, right + OF_CODON * k);
            // What is left of the codon before is read, of this codon written.
            lanes.wait();
        }
    }
    total = lanes.sum(total);
    int residues = 0;
    for (int k = 0; k < codons; k++) residues += text[k] != STOP;
    if (lane == 0) out[row * columns] = result(total, residues);
}
