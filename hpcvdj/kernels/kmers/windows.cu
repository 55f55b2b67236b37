// The k-mer at each position of a set of sequences.
#include "../sequence.cuh"

// codes[p]: two-bit code, above 3 for an ambiguous base; sequence[p]: the sequence of base p.
// key[p]: the k-mer that begins at p, first base in the highest bits; owner[p]: its sequence, or -1 if there is none.
extern "C" __global__ void windows(const u8 *codes, const int *sequence, i64 bases, int k, u64 *key, int *owner)
{
    const i64 p = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (p >= bases) return;
    u64 kmer = 0;
    bool complete = p + k <= bases && sequence[p + k - 1] == sequence[p];
    for (int q = 0; complete && q < k; q++) {
        const u32 code = codes[p + q];
        complete = code < 4;
        kmer = kmer << 2 | code;
    }
    key[p] = kmer;
    owner[p] = complete ? sequence[p] : -1;
}
