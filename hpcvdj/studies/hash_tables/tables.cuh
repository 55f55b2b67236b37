// Hash tables of k-mers as hpcvdj/studies/hash_tables/construction.py lays them out, and what comparing two buckets takes.
#pragma once

#include "sequence.cuh"

// The tables of some sequences.  Word is the type of counters and offsets.
template <typename Key, typename Word>
struct Tables {
    const Key *keys;      // [sequences, sub-tables, places]
    const Word *counts;   // [sequences, sub-tables, places]
    const Word *offsets;  // [sequences, sub-tables, buckets + 1]
    i64 first;            // sequence that the launch's first row or column is
    int sequences;        // rows or columns of the launch
    int places;           // of a sub-table, a multiple of 32
    int capacity;         // places that fit into shared memory at a time, a multiple of 32
    int subtables, buckets;

    __device__ __forceinline__ i64 table(int sequence, int s) const { return (first + sequence) * subtables + s; }

    // Offsets of a sub-table, and of the same one `later` sequences on, where bucket b begins: a pointer for all of a
    // tile, as one for each would take the registers that its sums need.
    __device__ __forceinline__ const Word *offsets_of(int sequence, int s) const
    {
        return offsets + table(sequence, s) * (buckets + 1);
    }

    __device__ __forceinline__ int at(const Word *bounds, int later, int b) const
    {
        return (int)__ldg(bounds + (i64)later * (subtables * (buckets + 1)) + b);
    }

    // Where bucket b begins; bucket `buckets` is the end of the sub-table.
    __device__ __forceinline__ int offset(int sequence, int s, int b) const
    {
        return (int)__ldg(offsets + table(sequence, s) * (buckets + 1) + b);
    }
};

// `entries` elements by the whole block, 16 bytes a thread; both ends have room for whole 16 bytes.
template <typename T>
__device__ __forceinline__ void copy_to_shared(T *to, const T *from, int entries)
{
    const int quads = (entries * (int)sizeof(T) + 15) / 16;
    for (int k = threadIdx.x; k < quads; k += blockDim.x) ((uint4 *)to)[k] = __ldg((const uint4 *)from + k);
}

// Products of the counters of k-mers that are in both sorted runs, in linear time.
template <typename Sum, typename Key, typename Row, typename Column>
__device__ __forceinline__ Sum merge_runs(
    const Key *x_keys, const Row *x_counts, int x, int x_end,
    const Key *y_keys, const Column *y_counts, int y, int y_end)
{
    Sum found = 0;
    while (x < x_end && y < y_end) {
        const Key mine = x_keys[x], theirs = y_keys[y];
        if (mine == theirs) found += (Sum)x_counts[x] * (Sum)y_counts[y];
        // Without a branch, so that the threads of a warp stay together whichever run each moves on in.
        x += mine <= theirs;
        y += theirs <= mine;
    }
    return found;
}

// The same, each k-mer of one run with all of the other.
template <typename Sum, typename Key, typename Row, typename Column>
__device__ __forceinline__ Sum compare_all(
    const Key *x_keys, const Row *x_counts, int x, int x_end,
    const Key *y_keys, const Column *y_counts, int y, int y_end)
{
    Sum found = 0;
    for (; x < x_end; x++) {
        const Key mine = x_keys[x];
        for (int k = y; k < y_end; k++)
            if (y_keys[k] == mine) found += (Sum)x_counts[x] * (Sum)y_counts[k];
    }
    return found;
}

// k-mers `from` ... of each row's run, as many as are kept; what a run lacks is filled with ones.
template <typename Key, int ROWS, int KEPT>
__device__ __forceinline__ void keep(
    Key (&kept)[ROWS][KEPT], const Key *keys, int capacity, const int *x, const int *x_end, int from)
{
    #pragma unroll
    for (int r = 0; r < ROWS; r++)
        #pragma unroll
        for (int e = 0; e < KEPT; e++) {
            const int place = x[r] + from + e;
            kept[r][e] = place < x_end[r] ? keys[r * capacity + place] : ~(Key)0;
        }
}

// A column's k-mer against the kept ones: one branch for all of them, as few agree.
template <typename Sum, typename Key, typename Row, typename Column, int ROWS, int KEPT, int COLUMNS>
__device__ __forceinline__ void match_kept(
    const Key (&kept)[ROWS][KEPT], Key key, const Column *count, const Row *own_counts, int own_step,
    const int *x, const int *x_end, int from, Sum (&sums)[ROWS][COLUMNS], int c)
{
    bool some = false;
    #pragma unroll
    for (int r = 0; r < ROWS; r++)
        #pragma unroll
        for (int e = 0; e < KEPT; e++) some |= kept[r][e] == key;
    if (!some) return;
    #pragma unroll
    for (int r = 0; r < ROWS; r++)
        #pragma unroll
        for (int e = 0; e < KEPT; e++) {
            // All ones are a k-mer where it fills its word: the filling does not count.
            const int place = x[r] + from + e;
            if (kept[r][e] == key && place < x_end[r])
                sums[r][c] += (Sum)own_counts[(i64)r * own_step + place] * (Sum)*count;
        }
}

// The sum over the lanes of a warp, in each of them.
template <typename Sum>
__device__ __forceinline__ Sum sum_of_warp(Sum value)
{
    #pragma unroll
    for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(~0u, value, apart);
    return value;
}

// Row and column tile of a block: blocks in a row of launches share 16 row tiles, so that what they read is in L2.
__device__ __forceinline__ void tile_of_block(int row_tiles, int column_tiles, int *row_tile, int *column_tile)
{
    const i64 group = blockIdx.x / (16ll * column_tiles), within = blockIdx.x % (16ll * column_tiles);
    const int rows = min(16, row_tiles - 16 * (int)group);
    *row_tile = 16 * (int)group + (int)(within % rows);
    *column_tile = (int)(within / rows);
}
