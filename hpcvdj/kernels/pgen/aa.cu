// Generation probabilities of amino-acid sequences: four lanes are one sequence, each a component of its weights.
//
// codons.py says what the components mean, symbol_tries.py what is known of a sequence's beginning and of its end.
// Here a codon is a step: Left goes through the codons from V, and what the D forms need of it is at most two codons
// old, so only Right is kept, in shared memory.  Where a weight goes through a 4 x 4 table, the lanes tell each other
// their components by shuffles.  All sequences of a warp take each step together, the shorter ones as bystanders: left
// to themselves, they would run one after another.
//
// Sums over one mismatch go the same way, with a slope behind each number: ball_cpu.py says what that is.
//
// The host defines structs, which tables.py, symbol_tries.py, codons.py, form_trie.py and aa_cuda.py describe.

#include "../tile.cuh"
#include "walk.cuh"

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

template <typename N, typename T>
__device__ __forceinline__ N product(const N *a, const Four<T> &b)
{
    return (a[0] * b.of[0] + a[1] * b.of[1]) + (a[2] * b.of[2] + a[3] * b.of[3]);
}

// A row of `one_over_two`, which has two symbols.
template <typename N>
__device__ __forceinline__ Four<N> one_over_two(const Forms &forms, int symbol, int next, int lane)
{
    const auto row = [&](int s, int r) {
        return four(forms.one_over_two + COMPONENTS * (COMPONENTS * (forms.symbols * s + r) + lane));
    };
    if constexpr (!HAS_SLOPE<N>) {
        return row(symbol, next);
    } else {
        const Four<double> first = row(ANY_RESIDUE, next), second = row(symbol, ANY_RESIDUE);
        Four<double> slopes;
        #pragma unroll
        for (int c = 0; c < COMPONENTS; c++) slopes.of[c] = first.of[c] + second.of[c];
        return four(row(symbol, next), slopes);
    }
}

// A number if the symbol has a codon; its slope, if any residue has it.  Products need fewer selections than sums.
__device__ __forceinline__ double fitting(double a, bool fits, bool)
{
    return a * (fits ? 1.0 : 0.0);
}

__device__ __forceinline__ Dual fitting(const Dual &a, bool fits, bool is_residue)
{
    return a * Dual{fits ? 1.0 : 0.0, is_residue ? 1.0 : 0.0};
}

// Codons of a symbol and of any residue, by bits; of none.
struct Codons {
    const bool has_one;
    u64 own = 0, any = 0;

    __device__ __forceinline__ Codons(const Forms &forms, bool has_one, int symbol) : has_one(has_one)
    {
        if (has_one) own = forms.codons[symbol], any = forms.codons[ANY_RESIDUE];
    }
};

// Weights within a codon, by the bases of D forms that it has, as FormTrie calls them; each lane writes a part of `out`.
//
// one, two  the components at the cut after one base, or before it, and at the other cut
// codons    of the symbol; `apart` and `between` are the distances of the bits of a component and of a pair of bases
template <typename N>
__device__ __forceinline__ void in_codon(
    const N &none, const N &one, const N *two, const Codons &codons, int apart, int between, int lane, N *out)
{
    if (lane == 0) out[0] = none;
    out[1 + lane] = one;
    // Where there is no codon, nothing may have been written.
    Four<N> other = {};
    #pragma unroll
    for (int c = 0; c < COMPONENTS && codons.has_one; c++) other.of[c] = two[c];
    #pragma unroll
    for (int b = 0; b < COMPONENTS; b++) {
        const int pair = COMPONENTS * lane + b;
        const u64 own = codons.own >> between * pair, any = codons.any >> between * pair;
        N sum = {};
        #pragma unroll
        for (int c = 0; c < COMPONENTS; c++) sum += fitting(other.of[c], own >> apart * c & 1, any >> apart * c & 1);
        out[1 + COMPONENTS + pair] = sum;
    }
}

// A lane's part of: left x D forms of which a codon is the first whole one x right.
//
// left           where the codon begins
// older          the weights within the codon before, [2, 4]
// right          from the codon's beginning
// before, after  [CUTS]
// lists          for texts with an X in the place of a symbol, which have slopes alone
template <typename N>
__device__ __forceinline__ N whole_codons(
    const Forms &forms, const Lanes &lanes, const Text &text, int codon, const N &left, const N *older, const N *right,
    N *before, N *after, const Lists &lists)
{
    const int lane = lanes.own;
    const Values<int> child = forms.trie.child, first = forms.trie.first;
    // A form whose first whole codon is the sequence's first would leave no base to V.
    int node = 0, last = codon;
    bool lives = 0 < codon && text.has(codon);
    // From the texts that are alive to those of one codon more.
    const auto go_through = [&](int symbol) {
        const int places = last++ - codon;
        const bool goes_on = lives && places < text.codons - codon;
        lives = false;
        for (int begin = 0; HAS_SLOPE<N> && begin <= places; begin += COMPONENTS) {
            // Each lane goes on with a text; the last has its X here.
            const int place = begin + lane;
            const int from = !goes_on || place > places ? -1 : place < places ? lists.nodes()[place] : node;
            const int next = from >= 0 ? child[from * forms.symbols + (place < places ? symbol : ANY_RESIDUE)] : -1;
            lives |= lanes.which(next >= 0) != 0;
            if (!goes_on || place > places) continue;
            lists.nodes()[place] = next;
            lists.first()[place] = next >= 0 ? first[next] : 0;
            lists.stop()[place] = next >= 0 ? first[next + 1] : 0;
        }
        node = goes_on && node >= 0 ? child[node * forms.symbols + symbol] : -1;
        lives |= node >= 0;
    };
    go_through(text[codon]);
    if (!lanes.any(lives)) return {};
    in_codon(
        left, lives ? older[COMPONENTS + lane] : N{}, older, Codons(forms, lives, text[max(codon - 1, 0)]),
        COMPONENTS * COMPONENTS, 1, lane, before);
    N total = {};
    while (lanes.any(lives)) {
        right += OF_CODON;
        const bool more = lives && text.has(last);
        if (lives)
            in_codon(
                right[0], more ? right[1 + lane] : N{}, right + (more ? 1 + COMPONENTS : 0),
                Codons(forms, more, text[last]), 1, COMPONENTS, lane, after);
        lanes.wait();
        if constexpr (HAS_SLOPE<N>) {
            for (int place = 0; place < last - codon && lives; place++)
                for (int form = lists.first()[place] + lane; form < lists.stop()[place]; form += COMPONENTS) {
                    const int cuts = forms.trie.cuts[form];
                    total.slope += before[cuts >> 8].value * forms.weight[form] * after[cuts & 255].value;
                }
        }
        if (node >= 0) {
            const int stop = first[node + 1];
            for (int form = first[node] + lane; form < stop; form += COMPONENTS) {
                const int cuts = forms.trie.cuts[form];
                total += before[cuts >> 8] * forms.weight[form] * after[cuts & 255];
            }
        }
        lanes.wait();
        go_through(text[last]);
    }
    return total;
}

// A lane's part of: left x D forms that begin in a codon and have no whole one x right.
template <typename N>
__device__ __forceinline__ N middle(
    const Forms &forms, const Text &text, int codon, int lane, const Weights<N> &left, const N *right)
{
    const N *const one = right + 1, *const two = one + COMPONENTS;
    N none = one[lane] * left.one + two[lane] * left.two;
    if (lane == 0) none += left.none * right[0];
    N part = none * forms.empty;
    const int symbol = text[codon];
    const OfSymbol<N> ends_two(forms.ends_two, COMPONENTS, symbol), one_three(forms.one_three, COMPONENTS, symbol);
    part += left.none * (one[lane] * forms.single[lane] + two[lane] * ends_two[lane]);
    part += right[OF_CODON] * (left.one * one_three[lane] + left.two * forms.single[lane]);
    constexpr int TABLE = COMPONENTS * COMPONENTS;
    N after_one = product(two, four(OfSymbol<N>(forms.one_two, TABLE, symbol), COMPONENTS * lane)), after_two = {};
    if (text.has(codon + 1)) {
        const N *const next_one = one + OF_CODON, *const next_two = two + OF_CODON;
        const int next = text[codon + 1];
        after_one += product(next_one, four(OfSymbol<N>(forms.one_one, TABLE, symbol), COMPONENTS * lane));
        after_one += product(next_two, one_over_two<N>(forms, symbol, next, lane));
        after_two = product(next_one, four(forms.across + COMPONENTS * lane));
        after_two += product(next_two, four(OfSymbol<N>(forms.two_two, TABLE, next), COMPONENTS * lane));
    }
    part += left.one * after_one + left.two * after_two;
    return part;
}

// A lane's part of the probability for one group; `shared` are the numbers of its sequence.
//
// most  codons of any sequence of the warp
template <typename N>
__device__ __forceinline__ N of_group(
    const SymbolTries &v, const SymbolTries &j, const Forms &forms, const Lanes &lanes, int v_row, int j_row,
    const Text &text, int most, N *shared, const Lists &lists, const Shared &at)
{
    const int lane = lanes.own;
    N *const right = shared;            // [OF_CODON codons + 1]
    N *const kept = shared + at.kept;   // [2, 2, 4]: two weights of two codons of Left
    N *const before = shared + at.before, *const after = shared + at.after;  // [CUTS]
    Walk<N> back(j, lanes, {text.symbols, text.codons, false}, lists, j_row);
    for (int step = 0; step < most; step++) {
        const int k = text.codons - 1 - step;
        const Weights<N> made = back.next();
        if (step == 0 && !lanes.any(text.codons > 0 && back.lives())) return {};
        if (k >= 0) {
            N *const here = right + OF_CODON * k;
            if (lane == 0) here[OF_CODON] = made.none;
            here[1 + COMPONENTS + lane] = made.one;
            here[1 + lane] = made.two;
        }
    }
    if (lane == 0) right[0] = {};
    // The lists are read, and begin again.
    lanes.wait();
    N total = {};
    Walk<N> front(v, lanes, text, lists, v_row);
    for (int k = 0; k < most; k++) {
        N *const now = kept + 2 * COMPONENTS * (k & 1);
        const Weights<N> left = front.next();
        now[lane] = left.one;
        now[COMPONENTS + lane] = left.two;
        // Right is written, and what is left of this codon.
        lanes.wait();
        if (text.has(k)) total += middle(forms, text, k, lane, left, right + OF_CODON * k);
        total += whole_codons(
            forms, lanes, text, k, left.none, kept + 2 * COMPONENTS * (~k & 1), right + OF_CODON * k, before, after,
            lists);
        lanes.wait();
    }
    return total;
}

// Shared memory has space for the usual sequences of no more blocks; threads may have the registers that these leave.
template <bool BALL>
constexpr int BLOCKS = BALL ? 3 : 5;

template <int W, bool BALL, bool SYMBOLS>
__global__ void __launch_bounds__(MOST_THREADS, BLOCKS<BALL>) amino_acids(
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
    u8 *const symbols = shared + at.symbols + at.codons * slot;  // [codons]
    const Lists lists = {(int *)(shared + at.lists) + LISTS * at.texts * slot, at.texts};

    const Tile tile = tiles[blockIdx.x];
    const bool has_one = slot < tile.rows;
    const i64 row = has_one ? rows[tile.row + slot] : 0;
    const int codons = has_one ? lengths[row] / 3 : 0, most = lanes.largest(codons);
    // Those without a sequence look at a symbol, too.
    if (lanes.own == 0) symbols[0] = STOP;
    for (int k = lanes.own; k < codons; k += COMPONENTS) {
        if (SYMBOLS) {
            symbols[k] = (u8)(words[row * W + k / SYMBOLS_PER_WORD] >> (56 - 8 * (k & 7)));
            continue;
        }
        int bases = 0;
        for (int place = 3 * k; place < 3 * k + 3; place++)
            bases = bases << 2 | ((int)(words[row * W + place / BASES_PER_WORD] >> (62 - 2 * (place & 31))) & 3);
        symbols[k] = of_codon[bases];
    }
    // The symbols are read by all lanes.
    lanes.wait();
    typedef typename Numbers<BALL>::type N;
    N total = {};
    for (int group = groups.first[tile.pair]; group < groups.first[tile.pair + 1]; group++)
        total += of_group<N>(
            v, j, Forms(codon_forms, trie, groups.d[group]), lanes, groups.v[group], groups.j[group],
            {symbols, codons, true}, most, (N *)shared + at.numbers * slot, lists, at) * groups.weight[group];
    total = lanes.sum(total);
    if (!has_one || lanes.own != 0) return;
    if constexpr (BALL) {
        // Where there is no stop, the sequence itself is one of those with an X.  Only rounding makes fewer than none.
        int residues = 0;
        for (int k = 0; k < codons; k++) residues += symbols[k] != STOP;
        out[row * columns] = total.value + max(0.0, total.slope - residues * total.value);
    } else {
        out[row * columns] = total;
    }
}
