// Method `direct` (ours): the closed form; a thread is one in vivo sequence, all n-lengths at once.
//
// direct_cpu.py says how: for each start q, the places of the extended D segments at which S[q:e] ends
// are one machine word `found`; each of its bits is a D form equal to S[q:e], and adds a trapezoid over the n-lengths
// to the second differences of the counts.  Here the steps (q, e) of a thread are one flat loop, so that the threads
// of a warp, whose inner runs differ in length, diverge only by their totals.

#include "../tile.cuh"

// Extended V and J of a pair, W words each: V from its first base, J up to its last base in the lowest bits.
struct PairFacts {
    int v_length, j_length;
    int locus;
};

template <int W>
__device__ __forceinline__ int common_prefix(const u64 *s, const u64 *v)
{
    int common = 0;
    #pragma unroll
    for (int w = W - 1; w >= 0; w--) {
        u64 differ = s[w] ^ v[w];
        common = differ ? __clzll(differ) / 2 : BASES_PER_WORD + common;
    }
    return common;
}

template <int W>
__device__ __forceinline__ int common_suffix(const u64 *s, const u64 *j, int length)
{
    // Align S to its last base: drop the zeros behind it.
    const int drop = 2 * (BASES_PER_WORD * W - length);
    const int whole = drop >> 6, bits = drop & 63;
    int common = 0;
    #pragma unroll
    for (int w = 0; w < W; w++) {
        u64 aligned = 0;
        #pragma unroll
        for (int k = 0; k < W; k++) {
            if (k == w - whole) aligned |= s[k] >> bits;
            if (k == w - whole - 1 && bits) aligned |= s[k] << (64 - bits);
        }
        u64 differ = aligned ^ j[w];
        common = differ ? (__ffsll(differ) - 1) / 2 : BASES_PER_WORD + common;
    }
    return common;
}

// D forms among the places `found`: each place is one, or each gene that has any is one.
__device__ __forceinline__ int weigh(u64 found, const u64 *genes, int most_genes)
{
    if (most_genes == 0) return __popcll(found);
    int weight = 0;
    for (int k = 0; k < most_genes; k++) weight += (found & genes[k]) != 0;
    return weight;
}

template <int W, typename Count>
__global__ void direct(
    const u64 *__restrict__ words,        // [sequences, W]
    const u8 *__restrict__ lengths,       // [sequences]
    const Tile *__restrict__ tiles,       // [gridDim.x]
    const PairFacts *__restrict__ facts,  // [pairs]
    const u64 *__restrict__ v_words,      // [pairs, W]
    const u64 *__restrict__ j_words,      // [pairs, W]
    const u64 *__restrict__ ends,         // [loci, most_words, 4] places of each base in the D segments
    const u64 *__restrict__ genes,        // [loci, most_words, most_genes] places of each gene, for distinct D forms
    const int *__restrict__ locus_words,  // [loci] words in use; 0 without D genes
    const int *__restrict__ empty_forms,  // [loci]
    int most_words, int most_genes,       // most_genes = 0: count D forms with multiplicity
    int max_n,
    u64 *__restrict__ counters)           // [sequences, max_n + 1]
{
    extern __shared__ __align__(16) u8 shared[];
    u64 *ends_here = (u64 *)shared;                    // [most_words, 4]
    Count *second = (Count *)(ends_here + 4 * most_words) + threadIdx.x;  // [max_n + 1, threads]
    const int stride = blockDim.x, columns = max_n + 1;
    const Tile tile = tiles[blockIdx.x];
    const PairFacts pair = facts[tile.pair];
    const int used = locus_words[pair.locus];
    for (int k = threadIdx.x; k < 4 * used; k += blockDim.x) ends_here[k] = ends[(i64)pair.locus * most_words * 4 + k];
    for (int m = 0; m < columns; m++) second[m * stride] = 0;
    __syncthreads();

    if ((int)threadIdx.x < tile.rows) {
        const i64 row = tile.row + threadIdx.x;
        const int length = lengths[row];
        u64 s[W], v[W], j[W];
        #pragma unroll
        for (int w = 0; w < W; w++) {
            s[w] = words[row * W + w];
            v[w] = v_words[(i64)tile.pair * W + w];
            j[w] = j_words[(i64)tile.pair * W + w];
        }
        const int a = min(min(common_prefix<W>(s, v), pair.v_length), length);
        const int b = min(min(common_suffix<W>(s, j, length), pair.j_length), length);
        const int top = min(max_n, length);

        for (int w = 0; w < used; w++) {
            const u64 *table = ends_here + 4 * w;
            const u64 *genes_here = genes + ((i64)pair.locus * most_words + w) * most_genes;
            const int last_start = min(length - 1, a + top);
            int q = -1, e = 0, left = 0, lefts = 0, earliest = 0;
            u64 found = 0;
            while (true) {
                if (found == 0) {
                    if (++q > last_start) break;
                    e = q;
                    left = max(0, q - a);
                    lefts = q - left + 1;
                    // A form that ends before `earliest` leaves more than `top` n-nucleotides outside V, D and J.
                    earliest = length - b - (top - left);
                }
                u64 word = s[0];
                #pragma unroll
                for (int k = 1; k < W; k++) word = e >= BASES_PER_WORD * k ? s[k] : word;
                const int base = (int)(word >> (62 - 2 * (e & 31))) & 3;
                found = (e == q ? ~0ull : found << 1) & table[base];
                e++;
                if (found && e >= earliest) {
                    const int right = max(0, length - e - b);
                    const int m = left + right, rights = length - e - right + 1;
                    const Count weight = weigh(found, genes_here, most_genes);
                    second[m * stride] += weight;
                    if (m + lefts <= top) second[(m + lefts) * stride] -= weight;
                    if (m + rights <= top) second[(m + rights) * stride] -= weight;
                    if (m + lefts + rights <= top) second[(m + lefts + rights) * stride] += weight;
                }
                if (e == length) found = 0;
            }
        }

        Count slope = 0, count = 0;
        for (int m = 0; m <= top; m++) {
            slope += second[m * stride];
            count += slope;
            // An empty D form cuts the m n-nucleotides at any of m + 1 places; without D genes there is no cut.
            const int both = length - m;
            const int pairs = max(0, min(a, both) - max(0, both - b) + 1);
            const int cuts = used ? empty_forms[pair.locus] * (m + 1) : 1;
            second[m * stride] = count + (Count)cuts * pairs;
        }
    }
    __syncthreads();
    // Rows of counters are consecutive: the block writes them as one run.
    const Count *counts = second - threadIdx.x;
    for (int k = threadIdx.x; k < tile.rows * columns; k += blockDim.x)
        counters[tile.row * columns + k] = (u64)counts[k % columns * stride + k / columns];
}
