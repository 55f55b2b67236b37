// Hash tables of k-mers as hpcvdj/motifs/tables/construction.py lays them out, and what comparing two buckets takes.
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
    const Key *x_keys, const Row *x_counts, int x, int x_end, const Key *y_keys, const Column *y_counts, int y, int y_end)
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
    const Key *x_keys, const Row *x_counts, int x, int x_end, const Key *y_keys, const Column *y_counts, int y, int y_end)
{
    Sum found = 0;
    for (; x < x_end; x++) {
        const Key mine = x_keys[x];
        for (int k = y; k < y_end; k++)
            if (y_keys[k] == mine) found += (Sum)x_counts[x] * (Sum)y_counts[k];
    }
    return found;
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
