// Generation probabilities of amino-acid sequences: four lanes are one sequence, each a component of its weights.
//
// codons.py says what the components mean, symbol_tries.py what is known of a sequence's beginning and of its end.
// Here a codon is a step: Left goes through the codons from V, and what the D forms need of it is at most two codons
// old, so only Right is kept, in shared memory.  Where a weight goes through a 4 x 4 table, the lanes tell each other
// their components by shuffles.  All sequences of a warp take each step together, the shorter ones as bystanders: left
// to themselves, they would run one after another.

#include "../tile.cuh"

constexpr int COMPONENTS = 4;

// Right has one weight where a codon begins, and 4 after each of its first two bases.
constexpr int OF_CODON = 1 + 2 * COMPONENTS;

struct __align__(16) Four {
    double of[COMPONENTS];
};

__device__ __forceinline__ Four four(const double *from)
{
    return *(const Four *)from;
}

// The four lanes of a sequence; all lanes of the warp call its functions together.
struct Lanes {
    static constexpr u32 ALL = ~0u;
    const int own;

    __device__ __forceinline__ Lanes() : own(threadIdx.x % COMPONENTS) {}

    __device__ __forceinline__ double of(double a, int lane) const
    {
        return __shfl_sync(ALL, a, lane, COMPONENTS);
    }

    // In the same order on each lane.
    __device__ __forceinline__ double sum(double a) const
    {
        return (of(a, 0) + of(a, 1)) + (of(a, 2) + of(a, 3));
    }

    // The own component of a weight after a 4 x 4 table.
    __device__ __forceinline__ double through(double a, const double *table) const
    {
        double sum = of(a, 0) * table[own];
        #pragma unroll
        for (int c = 1; c < COMPONENTS; c++) sum += of(a, c) * table[COMPONENTS * c + own];
        return sum;
    }

    // The own component of a weight after a 4 x 4 table of which each lane has a row.
    __device__ __forceinline__ double through(double a, const Four &row) const
    {
        const bool high = own & 2, odd = own & 1;
        const double first = exchanged(a * row.of[0], a * row.of[2], high, 2);
        const double second = exchanged(a * row.of[1], a * row.of[3], high, 2);
        return exchanged(first, second, odd, 1);
    }

    __device__ __forceinline__ void wait() const { __syncwarp(ALL); }

    __device__ __forceinline__ bool any(bool own) const { return __ballot_sync(ALL, own) != 0; }

    // The largest of the warp.
    __device__ __forceinline__ int largest(int a) const
    {
        for (int distance = 16; distance > 0; distance /= 2) a = max(a, __shfl_xor_sync(ALL, a, distance));
        return a;
    }

  private:
    // One of two values, and the same of another lane, which gets the other.
    __device__ __forceinline__ double exchanged(double a, double b, bool takes_b, int distance) const
    {
        return (takes_b ? b : a) + __shfl_xor_sync(ALL, takes_b ? a : b, distance);
    }
};

// Weights where a codon begins, the same on all lanes, and after its first and its second base.
struct Weights {
    double none, one, two;
};

// The prefix trees of a side and the steps behind them; see SymbolTries.
struct Side {
    const int *child, *after;
    const double *ended, *beyond, *one, *two, *whole;
    int codons;
};

// The weights of a side, codon by codon.
struct Walk {
    const Side &side;
    const Lanes &lanes;
    const int symbols;
    int row;            // in `child`; else -1
    int leaf = -1;      // in `beyond`; else -1
    int behind = 0;     // codons behind the leaf
    Four product = {};  // the own row of the steps behind the leaf
    double none = 0;    // where the next codon begins

    __device__ __forceinline__ Walk(const Side &side, const Lanes &lanes, int symbols, int row)
        : side(side), lanes(lanes), symbols(symbols), row(row)
    {
    }

    // Whether there may be any weights.
    __device__ __forceinline__ bool lives() const { return row >= 0 || leaf >= 0 || none != 0; }

    // Go through a codon, if the sequence has one.
    __device__ __forceinline__ Weights next(bool has_one, int symbol)
    {
        Weights made = {none, 0, 0};
        const int own = lanes.own;
        const bool in_tree = has_one && row >= 0, is_behind = has_one && leaf >= 0 && behind < side.codons;
        none = 0;
        if (in_tree) {
            const int node = side.child[row * symbols + symbol];
            row = -1;
            if (node >= 0) {
                const double *const ended = side.ended + (i64)ENDED * node;
                made.one = ended[own];
                made.two = ended[COMPONENTS + own];
                none = ended[2 * COMPONENTS];
                const int after = side.after[node];
                if (after >= 0) row = after;
                else leaf = ~after;
                #pragma unroll
                for (int c = 0; c < COMPONENTS; c++) product.of[c] = c == own ? 1 : 0;
            } else if (node == NOT_MADE) {
                made.one = made.two = none = nan("");
            }
        }
        if (!lanes.any(is_behind)) return made;
        const double *const whole = side.whole + COMPONENTS * COMPONENTS * symbol;
        double one = 0, two = 0, three = 0;
        if (is_behind) {
            const double *const weights = side.beyond + 3 * COMPONENTS * ((i64)leaf * side.codons + behind) + own;
            one = weights[0];
            two = weights[COMPONENTS];
            three = weights[2 * COMPONENTS];
            behind++;
        }
        one = lanes.through(lanes.through(one, product), side.one);
        two = lanes.through(lanes.through(two, product), side.two + COMPONENTS * COMPONENTS * symbol);
        if (is_behind) {
            Four longer = {};
            #pragma unroll
            for (int x = 0; x < COMPONENTS; x++) {
                const Four step = four(whole + COMPONENTS * x);
                #pragma unroll
                for (int c = 0; c < COMPONENTS; c++) longer.of[c] += product.of[x] * step.of[c];
            }
            product = longer;
        }
        three = lanes.sum(three * ((product.of[0] + product.of[1]) + (product.of[2] + product.of[3])));
        if (is_behind) {
            made.one = one;
            made.two = two;
            none = three;
        }
        return made;
    }
};

// D forms against codons, of one table of D genes; see CodonForms and FormTrie.
struct Forms {
    const u64 *codons;  // [symbols] by bits: the codons of each
    double empty;
    const double *single, *both, *ends_two, *one_two, *one_three, *one_one, *two_two, *one_over_two;
    const int *child, *first;
    const u16 *cuts;        // before << 8 | after
    const double *weight;
    int symbols;
};

__device__ __forceinline__ double product(const double *a, const Four &b)
{
    return (a[0] * b.of[0] + a[1] * b.of[1]) + (a[2] * b.of[2] + a[3] * b.of[3]);
}

// Weights within a codon, by the bases of D forms that it has, as FormTrie calls them; each lane writes a part of `out`.
//
// one, two  the components at the cut after one base, or before it, and at the other cut
// codons    of the symbol; `apart` and `between` are the distances of the bits of a component and of a pair of bases
__device__ __forceinline__ void in_codon(
    double none, double one, const double *two, u64 codons, int apart, int between, int lane, double *out)
{
    if (lane == 0) out[0] = none;
    out[1 + lane] = one;
    #pragma unroll
    for (int b = 0; b < COMPONENTS; b++) {
        const int pair = COMPONENTS * lane + b;
        const u64 bits = codons >> between * pair;
        double sum = 0;
        #pragma unroll
        for (int c = 0; c < COMPONENTS; c++) sum += bits >> apart * c & 1 ? two[c] : 0;
        out[1 + COMPONENTS + pair] = sum;
    }
}

// A lane's part of: left x D forms of which a codon is the first whole one x right.
//
// left           where the codon begins
// older          the weights within the codon before, [2, 4]
// right          from the codon's beginning
// before, after  [CUTS]
__device__ __forceinline__ double whole_codons(
    const Forms &forms, const Lanes &lanes, const u8 *symbols, int codon, int codons, double left, const double *older,
    const double *right, double *before, double *after)
{
    const int lane = lanes.own;
    int node = codon < codons ? forms.child[symbols[codon]] : -1;
    if (!lanes.any(node >= 0)) return 0;
    const bool has_before = 0 < codon && node >= 0;
    in_codon(
        left, has_before ? older[COMPONENTS + lane] : 0, older, has_before ? forms.codons[symbols[codon - 1]] : 0,
        COMPONENTS * COMPONENTS, 1, lane, before);
    double total = 0;
    for (int last = codon + 1; lanes.any(node >= 0); last++) {
        right += OF_CODON;
        const bool more = last < codons && node >= 0;
        if (node >= 0)
            in_codon(
                right[0], more ? right[1 + lane] : 0, right + (more ? 1 + COMPONENTS : 0),
                more ? forms.codons[symbols[last]] : 0, 1, COMPONENTS, lane, after);
        lanes.wait();
        if (node >= 0) {
            const int stop = forms.first[node + 1];
            for (int form = forms.first[node] + lane; form < stop; form += COMPONENTS) {
                const int cuts = forms.cuts[form];
                total += forms.weight[form] * before[cuts >> 8] * after[cuts & 255];
            }
            node = more ? forms.child[node * forms.symbols + symbols[last]] : -1;
        }
        lanes.wait();
    }
    return total;
}

// A lane's part of: left x D forms that begin in a codon and have no whole one x right.
__device__ __forceinline__ double middle(
    const Forms &forms, const u8 *symbols, int codon, int codons, int lane, const Weights &left, const double *right)
{
    const double *const one = right + 1, *const two = one + COMPONENTS;
    double none = one[lane] * left.one + two[lane] * left.two;
    if (lane == 0) none += left.none * right[0];
    double part = none * forms.empty;
    const int symbol = symbols[codon], row = COMPONENTS * symbol + lane;
    part += left.none * (one[lane] * forms.single[lane] + two[lane] * forms.ends_two[row]);
    part += right[OF_CODON] * (left.one * forms.one_three[row] + left.two * forms.single[lane]);
    double after_one = product(two, four(forms.one_two + COMPONENTS * row)), after_two = 0;
    if (codon + 1 < codons) {
        const double *const next_one = one + OF_CODON, *const next_two = two + OF_CODON;
        const int next = symbols[codon + 1];
        after_one += product(next_one, four(forms.one_one + COMPONENTS * row));
        after_one += product(
            next_two,
            four(forms.one_over_two + COMPONENTS * (COMPONENTS * (forms.symbols * symbol + next) + lane)));
        after_two = product(next_one, four(forms.both + COMPONENTS * lane));
        after_two += product(next_two, four(forms.two_two + COMPONENTS * (COMPONENTS * next + lane)));
    }
    part += left.one * after_one + left.two * after_two;
    return part;
}

// Numbers in shared memory for a sequence: Right, two weights of two codons of Left, and both sides of D forms.
// The sequences of a warp begin in different banks.
__device__ __forceinline__ int numbers_of(int most_codons)
{
    return (OF_CODON * most_codons + 1 + 4 * COMPONENTS + 2 * CUTS + 7) / 8 * 8 + 4;
}

// A lane's part of the probability for one group; `shared` has `numbers_of` numbers.
//
// most  codons of any sequence of the warp
__device__ __forceinline__ double of_group(
    const Side &v, const Side &j, const Forms &forms, const Lanes &lanes, int v_row, int j_row, const u8 *text,
    int codons, int most, double *shared, int most_codons)
{
    const int lane = lanes.own;
    double *const right = shared;                                    // [9 codons + 1]
    double *const kept = shared + OF_CODON * most_codons + 1;        // [2, 2, 4]
    double *const before = kept + 4 * COMPONENTS, *const after = before + CUTS;
    Walk back(j, lanes, forms.symbols, j_row);
    for (int step = 0; step < most; step++) {
        const int k = codons - 1 - step;
        const Weights made = back.next(k >= 0, text[max(k, 0)]);
        if (step == 0 && !lanes.any(codons > 0 && back.lives())) return 0;
        if (k >= 0) {
            double *const here = right + OF_CODON * k;
            if (lane == 0) here[OF_CODON] = made.none;
            here[1 + COMPONENTS + lane] = made.one;
            here[1 + lane] = made.two;
        }
    }
    if (lane == 0) right[0] = 0;
    double total = 0;
    Walk front(v, lanes, forms.symbols, v_row);
    for (int k = 0; k < most; k++) {
        double *const now = kept + 2 * COMPONENTS * (k & 1);
        const bool has_one = k < codons;
        const Weights left = front.next(has_one, text[has_one ? k : 0]);
        now[lane] = left.one;
        now[COMPONENTS + lane] = left.two;
        // Right is written, and what is left of this codon.
        lanes.wait();
        if (has_one) total += middle(forms, text, k, codons, lane, left, right + OF_CODON * k);
        total += whole_codons(
            forms, lanes, text, k, codons, left.none, kept + 2 * COMPONENTS * (~k & 1), right + OF_CODON * k, before,
            after);
        lanes.wait();
    }
    return total;
}

template <int W, bool BALL, bool SYMBOLS>
__global__ void __launch_bounds__(MOST_THREADS) amino_acids(
    const u64 *__restrict__ words,   // [junctions, W] nucleotides, or with SYMBOLS symbols
    const u8 *__restrict__ lengths,  // [junctions]
    const int *__restrict__ rows,    // junctions to compute, in frame, grouped by pair
    const Tile *__restrict__ tiles,  // [gridDim.x], of `rows`
    const int *__restrict__ first_group, const int *__restrict__ group_v, const int *__restrict__ group_j,
    const int *__restrict__ group_d,
    const u8 *__restrict__ of_codon,  // [64] the symbol of each
    const int *__restrict__ v_child, const int *__restrict__ v_after, const double *__restrict__ v_ended,
    const double *__restrict__ v_beyond, const double *__restrict__ v_one, const double *__restrict__ v_two,
    const double *__restrict__ v_whole, int v_codons,
    const int *__restrict__ j_child, const int *__restrict__ j_after, const double *__restrict__ j_ended,
    const double *__restrict__ j_beyond, const double *__restrict__ j_one, const double *__restrict__ j_two,
    const double *__restrict__ j_whole, int j_codons,
    const u64 *__restrict__ codon_sets, const double *__restrict__ empty, const double *__restrict__ single,
    const double *__restrict__ both, const double *__restrict__ ends_two,
    const double *__restrict__ one_two, const double *__restrict__ one_three, const double *__restrict__ one_one,
    const double *__restrict__ two_two, const double *__restrict__ one_over_two,
    const int *__restrict__ form_child, const int *__restrict__ first_form, const u16 *__restrict__ cuts,
    const double *__restrict__ weight, int symbols, int n_forms,
    int longest,                            // bases of any of the junctions
    int columns, double *__restrict__ out)  // [junctions, columns], the column of these values
{
    extern __shared__ __align__(16) u8 shared[];
    const int most_codons = longest / 3, numbers = numbers_of(most_codons);
    const int slot = threadIdx.x / COMPONENTS, slots = blockDim.x / COMPONENTS;
    const Lanes lanes;
    u8 *const text = (u8 *)((double *)shared + numbers * slots) + most_codons * slot;  // [codons]

    const Tile tile = tiles[blockIdx.x];
    const bool has_one = slot < tile.rows;
    const i64 row = has_one ? rows[tile.row + slot] : 0;
    const int codons = has_one ? lengths[row] / 3 : 0, most = lanes.largest(codons);
    // Those without a sequence look at a symbol, too.
    if (lanes.own == 0) text[0] = STOP;
    lanes.wait();
    for (int k = lanes.own; k < codons; k += COMPONENTS) {
        if (SYMBOLS) {
            text[k] = (u8)(words[row * W + k / SYMBOLS_PER_WORD] >> (56 - 8 * (k & 7)));
            continue;
        }
        int bases = 0;
        for (int place = 3 * k; place < 3 * k + 3; place++)
            bases = bases << 2 | ((int)(words[row * W + place / BASES_PER_WORD] >> (62 - 2 * (place & 31))) & 3);
        text[k] = of_codon[bases];
    }
    const Side v = {v_child, v_after, v_ended, v_beyond, v_one, v_two, v_whole, v_codons};
    const Side j = {j_child, j_after, j_ended, j_beyond, j_one, j_two, j_whole, j_codons};
    double own = 0, ball = 0;
    // The sequence itself; then with any residue at each of its codons.
    for (int changed = -1; changed < (BALL ? most : 0); changed++) {
        const bool changes = 0 <= changed && changed < codons;
        lanes.wait();
        const int symbol = text[changes ? changed : 0];
        lanes.wait();
        if (changes && lanes.own == 0) text[changed] = ANY_RESIDUE;
        lanes.wait();
        double total = 0;
        for (int group = first_group[tile.pair]; group < first_group[tile.pair + 1]; group++) {
            const i64 t = group_d[group], all = symbols, squares = COMPONENTS * COMPONENTS;
            const Forms forms = {
                codon_sets, empty[t], single + t * COMPONENTS, both + t * squares, ends_two + t * all * COMPONENTS,
                one_two + t * all * squares, one_three + t * all * COMPONENTS, one_one + t * all * squares,
                two_two + t * all * squares, one_over_two + t * all * all * squares, form_child,
                first_form, cuts, weight + t * n_forms, symbols};
            total += of_group(
                v, j, forms, lanes, group_v[group], group_j[group], text, codons, most,
                (double *)shared + numbers * slot, most_codons);
        }
        total = lanes.sum(total);
        // Where there is no stop, the sequence itself is one of its neighbours.  Only rounding makes fewer than none.
        if (changed < 0) own = total;
        else if (changes) ball += max(0.0, symbol == STOP ? total : total - own);
        // The text is read.
        lanes.wait();
        if (changes && lanes.own == 0) text[changed] = symbol;
    }
    if (has_one && lanes.own == 0) out[row * columns] = own + ball;
}
