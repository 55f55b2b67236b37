// Method `bitwise`: the paper's Algorithms 2 and 3, exhaustive enumeration at two bits a base.
//
// A thread is one n-nucleotide string.  It forms every nDn' of its string and compares it with every in vivo sequence
// of the V-J pair behind every V form that the sequence starts with; a match is then compared with the J forms.  The
// loops are nested in another order than in Algorithm 2: in vivo sequences and V forms are innermost, so that an nDn'
// is formed once and compared many times.  The combinations are the same; the first 16 bases are compared first.
//
// The grid's first dimension is the rank's block range of strings (equations 1 and 2), its second the tiles of in vivo
// sequences, which fill the GPU when 4^m threads cannot, its third runs of D forms, which keep a block's time short.

#include "pathways.cuh"

// The host defines MOST_D_FORMS, the D forms that constant memory holds, and REST_BYTES.
__constant__ u64 d_words[2 * MOST_D_FORMS];
__constant__ u8 d_lengths[MOST_D_FORMS];

#define GROUP 8      // heads compared before one branch
#define NOBODY 65535  // pads the heads to whole groups

// An in vivo sequence behind a V form that it starts with.
struct Rest {
    Packed bases;
    short row;     // of the tile
    short length;  // bases that are left
};
static_assert(sizeof(Rest) == REST_BYTES, "host and device agree on Rest");

// Algorithm 3 as meant: the k-th base of the string is base-4 digit k of the task.
__device__ __forceinline__ u64 n_nucleotides(i64 task, int m)
{
    u64 packed = 0;
    for (int k = 0; k < m; k++) packed |= (u64)(task >> (2 * k) & 3) << (62 - 2 * k);
    return packed;
}

// n[:p] + D + n[p:]
__device__ __forceinline__ Packed form_middle(u64 n, int p, Packed d, int d_length)
{
    Packed middle = push_back(d, p);
    Packed tail = push_back({shift_left(n, p), 0ull}, p + d_length);
    return {(n & first_bases(p)) | middle.high | tail.high, middle.low | tail.low};
}

// J forms equal to the `length` bases of `rest` (Algorithm 2, loop 5).
__device__ int count_j(Packed rest, int length, const Pair &pair, const u64 *j_words, const u8 *j_lengths)
{
    int count = 0;
    for (int k = pair.j_first; k < pair.j_first + pair.j_forms; k++)
        if (j_lengths[k] == length && agree(rest, {j_words[2 * k], j_words[2 * k + 1]}, length)) count++;
    return count;
}

// The V forms that each sequence of the tile starts with (Algorithm 2, loop 2), as a list in shared memory.
__device__ void list_rests(const Tile &tile, const Pair &pair, const u64 *words, const u8 *lengths, const u64 *v_words,
                           const u8 *v_lengths, Rest *rests, int *size)
{
    for (int row = threadIdx.x; row < tile.rows; row += blockDim.x) {
        i64 at = tile.row + row;
        Packed sequence = {words[2 * at], words[2 * at + 1]};
        int length = lengths[at];
        for (int k = pair.v_first; k < pair.v_first + pair.v_forms; k++) {
            int a = v_lengths[k];
            // V forms are nested prefixes in growing length: after a mismatch, every later one mismatches too.
            if (a > length || !agree(sequence, {v_words[2 * k], v_words[2 * k + 1]}, a)) break;
            rests[atomicAdd(size, 1)] = {drop_first(sequence, a), (short)row, (short)(length - a)};
        }
    }
}

// The first 16 bases, or `taken`, of each rest that has `taken` bases, in whole groups; returns how many with padding.
__device__ int list_heads(const Rest *rests, int size, int taken, u32 *heads, unsigned short *owners, int *live)
{
    __syncthreads();
    if (threadIdx.x == 0) *live = 0;
    __syncthreads();
    const u32 mask = (u32)(first_bases(min(taken, 16)) >> 32);
    for (int k = threadIdx.x; k < size; k += blockDim.x)
        if (rests[k].length >= taken) {
            int place = atomicAdd(live, 1);
            heads[place] = (u32)(rests[k].bases.high >> 32) & mask;
            owners[place] = k;
        }
    __syncthreads();
    const int found = *live, padded = (found + GROUP - 1) / GROUP * GROUP;
    for (int k = found + threadIdx.x; k < padded; k += blockDim.x) {
        heads[k] = ~0u;
        owners[k] = NOBODY;
    }
    __syncthreads();
    return padded;
}

extern "C" __global__ void bitwise(
    const u64 *__restrict__ words,      // [sequences, 2] packed in vivo sequences
    const u8 *__restrict__ lengths,     // [sequences]
    const Tile *__restrict__ tiles,     // [gridDim.y]
    const Pair *__restrict__ pairs,
    const u64 *__restrict__ v_words,    // [forms, 2]
    const u8 *__restrict__ v_lengths,   // [forms]
    const u64 *__restrict__ j_words,
    const u8 *__restrict__ j_lengths,
    int d_forms,                        // forms in constant memory; one empty form where there are no D genes
    int has_d,                          // without D genes there is no cut
    int m,                              // n-length
    i64 first, i64 last,                // the rank's tasks
    int capacity,                       // of the lists, a multiple of GROUP
    u64 *__restrict__ counters)         // [sequences]
{
    extern __shared__ __align__(16) u8 shared[];
    u32 *heads = (u32 *)shared;
    Rest *rests = (Rest *)(heads + capacity);
    u64 *counts = (u64 *)(rests + capacity);
    unsigned short *owners = (unsigned short *)(counts + TILE_ROWS);
    __shared__ int size, live;

    const Tile tile = tiles[blockIdx.y];
    const Pair pair = pairs[tile.pair];
    if (threadIdx.x == 0) size = 0;
    for (int k = threadIdx.x; k < tile.rows; k += blockDim.x) counts[k] = 0;
    __syncthreads();
    list_rests(tile, pair, words, lengths, v_words, v_lengths, rests, &size);
    __syncthreads();
    const int listed = size;

    const i64 task = task_of_thread(first);
    const u64 n = task < last ? n_nucleotides(task, m) : 0;
    int padded = 0;
    const int d_first = first_of_share(d_forms, blockIdx.z), d_last = first_of_share(d_forms, blockIdx.z + 1);
    for (int k = d_first; k < d_last; k++) {
        const Packed d = {d_words[2 * k], d_words[2 * k + 1]};
        const int d_length = d_lengths[k], taken = m + d_length;
        // D forms are in order of length, so the heads change a few dozen times in all.
        if (k == d_first || d_lengths[k - 1] != d_length) padded = list_heads(rests, listed, taken, heads, owners, &live);
        if (task >= last) continue;
        for (int p = m; p >= (has_d ? 0 : m); p--) {
            const Packed middle = form_middle(n, p, d, d_length);
            const u32 head = (u32)(middle.high >> 32);
            for (int at = 0; at < padded; at += GROUP) {
                const uint4 x = *(const uint4 *)(heads + at), y = *(const uint4 *)(heads + at + 4);
                if (!(x.x == head | x.y == head | x.z == head | x.w == head | y.x == head | y.y == head | y.z == head |
                      y.w == head))
                    continue;
                for (int one = at; one < at + GROUP; one++) {
                    if (heads[one] != head || owners[one] == NOBODY) continue;
                    const Rest rest = rests[owners[one]];
                    if (!agree(rest.bases, middle, taken)) continue;
                    const int left = rest.length - taken;
                    const int found = count_j(drop_first(rest.bases, taken), left, pair, j_words, j_lengths);
                    if (found) atomicAdd(&counts[rest.row], (u64)found);
                }
            }
        }
    }
    __syncthreads();
    add_counts(counts, tile, counters);
}
