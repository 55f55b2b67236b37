// Method `matrix`: the tables F and G whose matrix product is the counters.
#include "../sequence.cuh"

// A block takes one column and one part of the 4^k k-mers: neighbours[h][j][x] = occurrences in column j of k-mers at
// distance exactly h from x, as bytes.  A part has 2^part_bits k-mers; overflow is set if a counter passes 127.
extern "C" __global__ void neighbourhoods(const u64 *key, const u32 *count, const i64 *offsets, int columns, int k,
                                          int part_bits, const u32 *difference, const int *distance, int differences,
                                          int planes, u32 *neighbours, int *overflow)
{
    extern __shared__ u32 table[];
    const int j = blockIdx.x;
    const u32 part = blockIdx.y;
    const u32 size = 1u << part_bits, words = size / 4;
    for (u32 c = threadIdx.x; c < planes * words; c += blockDim.x) table[c] = 0;
    __syncthreads();
    const i64 first = offsets[j];
    const i64 items = (offsets[j + 1] - first) * differences;
    bool over = false;
    for (i64 item = threadIdx.x; item < items; item += blockDim.x) {
        const i64 p = first + item / differences;
        const int q = (int)(item % differences);
        const u32 x = (u32)key[p] ^ difference[q], f = count[p];
        if (x >> part_bits != part) continue;
        const u32 at = distance[q] * words + (x & (size - 1)) / 4, shift = 8 * (x % 4);
        const u32 before = atomicAdd(&table[at], f << shift) >> shift & 255;
        over |= f > 127 || before + f > 127;
    }
    if (over) *overflow = 1;
    __syncthreads();
    const i64 row_words = ((1ll << 2 * k) + 3) / 4;
    for (u32 c = threadIdx.x; c < planes * words; c += blockDim.x) {
        const u32 h = c / words, w = c % words;
        neighbours[((i64)h * columns + j) * row_words + (i64)part * words + w] = table[c];
    }
}
