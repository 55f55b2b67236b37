// Generation probabilities of amino-acid sequences: four lanes are one sequence, each a component of its weights.
//
// codons.py says what the components mean, symbol_tries.py what is known of a sequence's beginning and of its end.
// Here a codon is a step: Left goes through the codons from V, and what the D forms need of it is at most two codons
// old, so only Right is kept, in shared memory.  Where a weight goes through a 4 x 4 table, the lanes tell each other
// their components by shuffles.  All sequences of a warp take each step together, the shorter ones as bystanders: left
// to themselves, they would run one after another.
//
// The host defines structs, which tables.py, symbol_tries.py, codons.py, form_trie.py and aa_cuda.py describe.

#include "../tile.cuh"

struct __align__(16) Four {
    double of[COMPONENTS];
};

__device__ __forceinline__ Four four(const double *from)
{
    return *(const Four *)from;
}

__device__ __forceinline__ Four four(const Values<double> &from)
{
    const double2 low = __ldg((const double2 *)from.at), high = __ldg((const double2 *)from.at + 1);
    return {low.x, low.y, high.x, high.y};
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
    __device__ __forceinline__ double through(double a, const Values<double> &table) const
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

// The weights of a side, codon by codon.
struct Walk {
    const SymbolTries &side;
    const Lanes &lanes;
    const int codons;   // of the longest insertion
    int row;            // in `child`; else -1
    int leaf = -1;      // in `beyond`; else -1
    int behind = 0;     // codons behind the leaf
    Four product = {};  // the own row of the steps behind the leaf
    double none = 0;    // where the next codon begins

    __device__ __forceinline__ Walk(const SymbolTries &side, const Lanes &lanes, int row)
        : side(side), lanes(lanes), codons(side.beyond.width / (3 * COMPONENTS)), row(row)
    {
    }

    // Whether there may be any weights.
    __device__ __forceinline__ bool lives() const { return row >= 0 || leaf >= 0 || none != 0; }

    // Go through a codon, if the sequence has one.
    __device__ __forceinline__ Weights next(bool has_one, int symbol)
    {
        Weights made = {none, 0, 0};
        const int own = lanes.own;
        const bool in_tree = has_one && row >= 0, is_behind = has_one && leaf >= 0 && behind < codons;
        none = 0;
        if (in_tree) {
            const int node = side.child.row(row)[symbol];
            row = -1;
            if (node >= 0) {
                const Values<double> ended = side.ended.row(node);
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
        const Values<double> whole = side.whole.row(symbol);
        double one = 0, two = 0, three = 0;
        if (is_behind) {
            const Values<double> weights = side.beyond.row(leaf) + 3 * COMPONENTS * behind + own;
            one = weights[0];
            two = weights[COMPONENTS];
            three = weights[2 * COMPONENTS];
            behind++;
        }
        one = lanes.through(lanes.through(one, product), side.one);
        two = lanes.through(lanes.through(two, product), side.two.row(symbol));
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

// D forms against codons, of one table of D genes.
struct Forms {
    Values<u64> codons;
    double empty;
    Values<double> single, across, ends_two, one_two, one_three, one_one, two_two, one_over_two;
    const FormTrie &trie;
    Values<double> weight;
    int symbols;

    __device__ __forceinline__ Forms(const CodonForms &all, const FormTrie &trie, int t)
        : codons(all.codons), empty(all.empty[t]), single(all.single.row(t)), across(all.across.row(t)),
          ends_two(all.ends_two.row(t)), one_two(all.one_two.row(t)), one_three(all.one_three.row(t)),
          one_one(all.one_one.row(t)), two_two(all.two_two.row(t)), one_over_two(all.one_over_two.row(t)), trie(trie),
          weight(trie.weight.row(t)), symbols(all.codons.rows)
    {
    }
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
    int node = codon < codons ? forms.trie.child[symbols[codon]] : -1;
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
            const int stop = forms.trie.first[node + 1];
            for (int form = forms.trie.first[node] + lane; form < stop; form += COMPONENTS) {
                const int cuts = forms.trie.cuts[form];
                total += forms.weight[form] * before[cuts >> 8] * after[cuts & 255];
            }
            node = more ? forms.trie.child[node * forms.symbols + symbols[last]] : -1;
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
        after_two = product(next_one, four(forms.across + COMPONENTS * lane));
        after_two += product(next_two, four(forms.two_two + COMPONENTS * (COMPONENTS * next + lane)));
    }
    part += left.one * after_one + left.two * after_two;
    return part;
}

// A lane's part of the probability for one group; `shared` are the numbers of its sequence.
//
// most  codons of any sequence of the warp
__device__ __forceinline__ double of_group(
    const SymbolTries &v, const SymbolTries &j, const Forms &forms, const Lanes &lanes, int v_row, int j_row,
    const u8 *text, int codons, int most, double *shared, const Shared &at)
{
    const int lane = lanes.own;
    double *const right = shared;            // [OF_CODON codons + 1]
    double *const kept = shared + at.kept;   // [2, 2, 4]: two weights of two codons of Left
    double *const before = shared + at.before, *const after = shared + at.after;  // [CUTS]
    Walk back(j, lanes, j_row);
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
    Walk front(v, lanes, v_row);
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
    const u8 *__restrict__ of_codon,  // [64] the symbol of each
    const Groups groups, const SymbolTries v, const SymbolTries j, const CodonForms codon_forms, const FormTrie trie,
    const Shared at,
    int columns, double *__restrict__ out)  // [junctions, columns], the column of these values
{
    extern __shared__ __align__(16) u8 shared[];
    const int slot = threadIdx.x / COMPONENTS;
    const Lanes lanes;
    u8 *const text = shared + at.texts + at.codons * slot;  // [codons]

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
        for (int group = groups.first[tile.pair]; group < groups.first[tile.pair + 1]; group++)
            total += of_group(
                v, j, Forms(codon_forms, trie, groups.d[group]), lanes, groups.v[group], groups.j[group], text, codons,
                most, (double *)shared + at.numbers * slot, at);
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
