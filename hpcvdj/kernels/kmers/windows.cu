// The k-mer at each position of a set of sequences.

// codes[p]: two-bit code, 255 for an ambiguous base; sequence[p]: the sequence that holds it.
// key[p]: the k-mer that begins at p, first base in the highest bits; owner[p]: its sequence, or -1 if there is none.
extern "C" __global__ void windows(const unsigned char *codes, const int *sequence, long long bases, int k,
                                   unsigned long long *key, int *owner)
{
    const long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (p >= bases)
        return;
    unsigned long long word = 0;
    const int mine = sequence[p];
    bool whole = p + k <= bases && sequence[p + k - 1] == mine;
    for (int q = 0; whole && q < k; q++) {
        const unsigned code = codes[p + q];
        whole = code < 4;
        word = word << 2 | code;
    }
    key[p] = word;
    owner[p] = whole ? mine : -1;
}
