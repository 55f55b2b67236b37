// Method `baseline`: the enumeration that the paper compares against (its reference 9), one byte a base.
//
// A thread is one n-nucleotide string; forms are in constant memory, in vivo sequences in rows of 64 bytes.  The
// tiling, the order of the loops and the grid are those of bitwise.cu, so that what differs is the representation:
// letters are copied and compared one by one, up to the first that differs.

#include "pathways.cuh"

// The host defines PADDED, the bytes of an in vivo sequence (section V-A), D_BYTES, those of a D form's row, MOST_D_FORMS,
// the D forms that constant memory holds, and START_BYTES.
__constant__ u8 d_codes[D_BYTES * MOST_D_FORMS];
__constant__ u8 d_lengths[MOST_D_FORMS];

// An in vivo sequence behind a V form that it starts with.
struct Start {
    short row;     // of the tile
    short at;      // length of the V form
    short length;  // of the sequence
};
static_assert(sizeof(Start) == START_BYTES, "host and device agree on Start");

__device__ __forceinline__ bool equal(const u8 *text, const u8 *form, int length)
{
    for (int k = 0; k < length; k++)
        if (text[k] != form[k]) return false;
    return true;
}

// J forms equal to the `length` letters of `rest`.
__device__ int count_j(const u8 *rest, int length, const Pair &pair, const u8 *j_codes, const u8 *j_lengths)
{
    int count = 0;
    for (int k = pair.j_first; k < pair.j_first + pair.j_forms; k++)
        if (j_lengths[k] == length && equal(rest, j_codes + (i64)PADDED * k, length)) count++;
    return count;
}

extern "C" __global__ void baseline(
    const u8 *__restrict__ in_vivo,     // [sequences, 64] codes
    const u8 *__restrict__ lengths,     // [sequences]
    const Tile *__restrict__ tiles,     // [gridDim.y]
    const Pair *__restrict__ pairs,
    const u8 *__restrict__ v_codes,     // [forms, 64]
    const u8 *__restrict__ v_lengths,   // [forms]
    const u8 *__restrict__ j_codes,
    const u8 *__restrict__ j_lengths,
    int d_forms,                        // forms in constant memory; one empty form where there are no D genes
    int has_d,                          // without D genes there is no cut
    int m,                              // n-length
    i64 first, i64 last,                // the rank's tasks
    int capacity,                       // of the list of starts
    u64 *__restrict__ counters)         // [sequences]
{
    extern __shared__ __align__(16) u8 shared[];
    const Tile tile = tiles[blockIdx.y];
    const Pair pair = pairs[tile.pair];
    u64 *counts = (u64 *)shared;
    Start *starts = (Start *)(counts + TILE_ROWS);
    u8 *text = (u8 *)(starts + capacity);
    // Letter k of each thread's nDn', thread by thread, so that a warp's letters share banks.
    u8 *middle = text + TILE_ROWS * PADDED + threadIdx.x;
    const int stride = blockDim.x;
    __shared__ int size;

    if (threadIdx.x == 0) size = 0;
    for (int k = threadIdx.x; k < tile.rows; k += blockDim.x) counts[k] = 0;
    for (int k = threadIdx.x; k < tile.rows * PADDED; k += blockDim.x) text[k] = in_vivo[(i64)tile.row * PADDED + k];
    __syncthreads();
    for (int row = threadIdx.x; row < tile.rows; row += blockDim.x) {
        const int length = lengths[tile.row + row];
        for (int k = pair.v_first; k < pair.v_first + pair.v_forms; k++) {
            const int a = v_lengths[k];
            if (a > length || !equal(text + row * PADDED, v_codes + (i64)PADDED * k, a)) break;
            starts[atomicAdd(&size, 1)] = {(short)row, (short)a, (short)length};
        }
    }
    __syncthreads();

    const i64 task = task_of_thread(first);
    if (task < last) {
        const int d_last = first_of_share(d_forms, blockIdx.z + 1);
        for (int k = first_of_share(d_forms, blockIdx.z); k < d_last; k++) {
            const u8 *d = d_codes + D_BYTES * k;
            const int d_length = d_lengths[k];
            const int taken = m + d_length;
            for (int p = m; p >= (has_d ? 0 : m); p--) {
                for (int i = 0; i < p; i++) middle[i * stride] = task >> (2 * i) & 3;
                for (int i = 0; i < d_length; i++) middle[(p + i) * stride] = d[i];
                for (int i = p; i < m; i++) middle[(d_length + i) * stride] = task >> (2 * i) & 3;
                for (int at = 0; at < size; at++) {
                    const Start start = starts[at];
                    if (start.at + taken > start.length) continue;
                    const u8 *rest = text + start.row * PADDED + start.at;
                    int i = 0;
                    while (i < taken && rest[i] == middle[i * stride]) i++;
                    if (i < taken) continue;
                    const int found = count_j(rest + taken, start.length - start.at - taken, pair, j_codes, j_lengths);
                    if (found) atomicAdd(&counts[start.row], (u64)found);
                }
            }
        }
    }
    __syncthreads();
    add_counts(counts, tile, counters);
}
