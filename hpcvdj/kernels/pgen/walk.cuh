// The weights of a side, codon by codon.
#pragma once

#include "lanes.cuh"

// Weights where a codon begins, the same on all lanes, and after its first and its second base.
template <typename N>
struct Weights {
    N none, one, two;
};

// A sequence, from V or from J.
struct Text {
    const u8 *symbols;
    int codons;
    bool forwards;

    __device__ __forceinline__ bool has(int k) const { return k < codons; }

    // Of a codon that there is not, another.
    __device__ __forceinline__ int operator[](int k) const
    {
        return symbols[has(k) ? forwards ? k : codons - 1 - k : 0];
    }
};

// Lists of a sequence for sums over one mismatch, each of so many places.
struct Lists {
    int *const at;
    const int size;

    // Texts with an X in the place of a symbol: rows in `child`, or -1.
    __device__ __forceinline__ int *texts() const { return at; }

    // Leaves of the texts so far, of the shortest first; after each codon, how many there are.
    __device__ __forceinline__ int *leaves() const { return at + size; }
    __device__ __forceinline__ int *ends() const { return at + 2 * size; }

    // For a codon: nodes of the texts, and their D forms.
    __device__ __forceinline__ int *nodes() const { return at + 3 * size; }
    __device__ __forceinline__ int *first() const { return at + 4 * size; }
    __device__ __forceinline__ int *stop() const { return at + 5 * size; }
};

// The own row of the product of no steps.
template <typename N>
__device__ __forceinline__ Four<N> no_steps(const Lanes &lanes)
{
    Four<N> row;
    #pragma unroll
    for (int c = 0; c < COMPONENTS; c++) row.of[c] = N{c == lanes.own ? 1.0 : 0.0};
    return row;
}

// The own row of a product after one step more.
template <typename N>
__device__ __forceinline__ Four<N> longer(const Four<N> &product, const OfSymbol<N> &step)
{
    Four<N> longer = {};
    #pragma unroll
    for (int x = 0; x < COMPONENTS; x++) {
        const Four<N> row = four(step, COMPONENTS * x);
        #pragma unroll
        for (int c = 0; c < COMPONENTS; c++) longer.of[c] += product.of[x] * row.of[c];
    }
    return longer;
}

template <typename N>
struct Walk {
    const SymbolTries &side;
    const Lanes &lanes;
    const Text text;
    const int codons;        // of the longest insertion
    int row;                 // in `child`; else -1
    int k = 0;               // the next codon
    int leaf = -1;           // in `beyond`; else -1
    int behind = 0;          // codons behind the leaf
    Four<N> product = {};    // the own row of the steps behind the leaf
    N none = 0;              // where the next codon begins

    __device__ __forceinline__ Walk(
        const SymbolTries &side, const Lanes &lanes, const Text &text, const Lists &, int row)
        : side(side), lanes(lanes), text(text), codons(side.beyond.width / (3 * COMPONENTS)), row(row)
    {
    }

    // Whether there may be any weights.
    __device__ __forceinline__ bool lives() const { return row >= 0 || leaf >= 0 || none != 0; }

    // Go through a codon, if the sequence has one.
    __device__ __forceinline__ Weights<N> next()
    {
        Weights<N> made = {none, 0, 0};
        const int own = lanes.own, symbol = text[k];
        const bool in_tree = text.has(k) && row >= 0, is_behind = text.has(k) && leaf >= 0 && behind < codons;
        k++;
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
                product = no_steps<N>(lanes);
            } else if (node == NOT_MADE) {
                made.one = made.two = none = nan("");
            }
        }
        if (!lanes.any(is_behind)) return made;
        N one = 0, two = 0, three = 0;
        if (is_behind) {
            const Values<double> weights = side.beyond.row(leaf) + 3 * COMPONENTS * behind + own;
            one = weights[0];
            two = weights[COMPONENTS];
            three = weights[2 * COMPONENTS];
            behind++;
        }
        one = lanes.through(lanes.through(one, product), side.one);
        two = lanes.through(lanes.through(two, product), side.two.row(symbol));
        if (is_behind) product = longer(product, OfSymbol<N>(side.whole, side.whole.width, symbol));
        three = lanes.sum(three * ((product.of[0] + product.of[1]) + (product.of[2] + product.of[3])));
        if (is_behind) {
            made.one = one;
            made.two = two;
            none = three;
        }
        return made;
    }
};

// With slopes: of the sequence itself and of the texts with an X in the place of a symbol.
template <>
struct Walk<Dual> {
    const SymbolTries &side;
    const Lanes &lanes;
    const Text text;
    const Lists lists;
    const int codons;           // of the longest insertion
    int row;                    // of the sequence itself in `child`; else -1
    bool in_tree;               // whether any text is
    int k = 0;                  // the next codon
    int leaves = 0;             // in `lists`
    int itself = -1;            // which of them is that of the sequence itself
    int shortest = 0;           // codons of the text of the first leaf
    int longest = 0;            // and of that of the last
    Four<Dual> product = {};    // the own row of the steps behind the last leaf
    Dual none = {};             // where the next codon begins

    __device__ __forceinline__ Walk(
        const SymbolTries &side, const Lanes &lanes, const Text &text, const Lists &lists, int row)
        : side(side), lanes(lanes), text(text), lists(lists), codons(side.beyond.width / (3 * COMPONENTS)), row(row),
          in_tree(row >= 0)
    {
    }

    __device__ __forceinline__ bool lives() const
    {
        return in_tree || leaves > 0 || none.value != 0 || none.slope != 0;
    }

    __device__ __forceinline__ Weights<Dual> next()
    {
        Weights<Dual> made = {none, {}, {}};
        none = {};
        const bool is_behind = text.has(k) && leaves > 0 && k - longest < codons, goes_on = text.has(k) && in_tree;
        if (lanes.any(is_behind)) behind_leaves(made, is_behind);
        if (lanes.any(goes_on)) in_trees(made, goes_on);
        k++;
        return made;
    }

  private:
    // Add insertions from the leaves, which take their steps together from leaf to leaf.
    __device__ __forceinline__ void behind_leaves(Weights<Dual> &made, bool is_behind)
    {
        Dual weights[3] = {};
        for (int more = 0; lanes.any(is_behind && shortest + more <= longest); more++) {
            const int length = shortest + more;
            const bool has_leaves = is_behind && length <= longest;
            if (more > 0) {
                const OfSymbol<Dual> step(side.whole, side.whole.width, text[length - 1]);
                #pragma unroll
                for (int f = 0; f < 3; f++) {
                    const Dual stepped = lanes.through(weights[f], step);
                    if (has_leaves) weights[f] = stepped;
                }
            }
            if (!has_leaves || k - length >= codons) continue;
            const int stop = lists.ends()[length];
            for (int leaf = more > 0 ? lists.ends()[length - 1] : 0; leaf < stop; leaf++) {
                const Values<double> begun =
                    side.beyond.row(lists.leaves()[leaf]) + 3 * COMPONENTS * (k - length) + lanes.own;
                #pragma unroll
                for (int f = 0; f < 3; f++) {
                    const double weight = begun[COMPONENTS * f];
                    if (leaf == itself) weights[f].value += weight;
                    else weights[f].slope += weight;
                }
            }
        }
        const int symbol = text[k];
        const Dual one = lanes.through(lanes.through(weights[0], product), side.one);
        const Dual two = lanes.through(
            lanes.through(weights[1], product), OfSymbol<Dual>(side.two, side.two.width, symbol));
        if (is_behind) product = longer(product, OfSymbol<Dual>(side.whole, side.whole.width, symbol));
        const Dual three = lanes.sum(weights[2] * ((product.of[0] + product.of[1]) + (product.of[2] + product.of[3])));
        if (!is_behind) return;
        made.one += one;
        made.two += two;
        none += three;
    }

    // Add what ends in the codon that the texts have next, and take their leaves.
    __device__ __forceinline__ void in_trees(Weights<Dual> &made, bool goes_on)
    {
        const int own = lanes.own, symbol = text[k], leaves_before = leaves;
        bool are_inner = false;
        for (int begin = 0; begin <= k; begin += COMPONENTS) {
            // Each lane goes on with a text; the k-th has its X here.
            const int place = begin + own;
            const int from = !goes_on || place > k ? -1 : place < k ? lists.texts()[place] : row;
            const int node = from >= 0 ? side.child.row(from)[place < k ? symbol : ANY_RESIDUE] : -1;
            const int after = node >= 0 ? side.after[node] : 0;
            const u32 of_leaves = lanes.which(node >= 0 && after < 0);
            if (node >= 0 && after < 0) lists.leaves()[leaves + __popcll(of_leaves & ((1u << own) - 1))] = ~after;
            leaves += __popcll(of_leaves);
            are_inner |= lanes.which(node >= 0 && after >= 0) != 0;
            if (goes_on && place <= k) {
                lists.texts()[place] = node >= 0 && after >= 0 ? after : -1;
                lists.nodes()[place] = node;
            }
        }
        const int node = goes_on && row >= 0 ? side.child.row(row)[symbol] : -1;
        const int after = node >= 0 ? side.after[node] : 0;
        if (node >= 0 && after < 0) {
            itself = leaves++;
            if (own == 0) lists.leaves()[itself] = ~after;
        }
        if (goes_on) {
            row = node >= 0 && after >= 0 ? after : -1;
            in_tree = are_inner || row >= 0;
            if (own == 0) lists.ends()[k + 1] = leaves;
        }
        if (leaves > leaves_before) {
            longest = k + 1;
            if (leaves_before == 0) shortest = longest;
            product = no_steps<Dual>(lanes);
        }
        lanes.wait();
        bool is_made = node != NOT_MADE;
        for (int place = 0; place <= k && goes_on; place++) {
            const int other = lists.nodes()[place];
            is_made &= other != NOT_MADE;
            if (other < 0) continue;
            const Values<double> ended = side.ended.row(other);
            // After a codon's first base, the other side has its symbol, and the slope: here it may be any.
            if (place == k) made.one.value += ended[own];
            else made.one.slope += ended[own];
            made.two.slope += ended[COMPONENTS + own];
            none.slope += ended[2 * COMPONENTS];
        }
        if (node >= 0) {
            made.two.value += side.ended.row(node)[COMPONENTS + own];
            none.value += side.ended.row(node)[2 * COMPONENTS];
        }
        if (!is_made) made.one = made.two = none = {nan(""), nan("")};
        // The nodes are read.
        lanes.wait();
    }
};
