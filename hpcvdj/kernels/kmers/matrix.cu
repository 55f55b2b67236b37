// Method `matrix`: the tables F and G that a matrix product turns into counters.

typedef unsigned long long word;

// A block takes one column and one part of the 4^k k-mers: neighbours[h][j][x] = occurrences in column j of k-mers at
// distance exactly h from x, as bytes.  A part has 2^part_bits k-mers; overflow is set if a counter passes 127.
extern "C" __global__ void neighbourhoods(const word *key, const unsigned *count, const long long *offsets, int columns,
                                          int k, int part_bits, const unsigned *difference, const int *distance,
                                          int differences, int planes, unsigned *neighbours, int *overflow)
{
    extern __shared__ unsigned table[];
    const int j = blockIdx.x;
    const unsigned part = blockIdx.y;
    const unsigned size = 1u << part_bits, words = size / 4;
    for (unsigned c = threadIdx.x; c < planes * words; c += blockDim.x)
        table[c] = 0;
    __syncthreads();
    const long long first = offsets[j];
    const long long items = (offsets[j + 1] - first) * differences;
    bool over = false;
    for (long long item = threadIdx.x; item < items; item += blockDim.x) {
        const long long p = first + item / differences;
        const int q = (int)(item % differences);
        const unsigned x = (unsigned)key[p] ^ difference[q], f = count[p];
        if (x >> part_bits != part)
            continue;
        const unsigned at = distance[q] * words + (x & (size - 1)) / 4, shift = 8 * (x % 4);
        const unsigned before = atomicAdd(&table[at], f << shift) >> shift & 255;
        over |= f > 127 || before + f > 127;
    }
    if (over)
        *overflow = 1;
    __syncthreads();
    const long long row_words = ((1ll << 2 * k) + 3) / 4;
    for (unsigned c = threadIdx.x; c < planes * words; c += blockDim.x) {
        const unsigned h = c / words, w = c % words;
        neighbours[((long long)h * columns + j) * row_words + (long long)part * words + w] = table[c];
    }
}
