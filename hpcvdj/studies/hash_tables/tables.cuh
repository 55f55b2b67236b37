// Hash tables of k-mers as construction.py lays them out, and what comparing two buckets takes.
#pragma once

#include "../../kernels/sequence.cuh"

// The tables of some sequences.  Word is the type of counters and offsets.
template <typename Key, typename Word>
struct Tables {
    const Key *keys;      // [sequences, sub-tables, places]
    const Word *counts;   // [sequences, sub-tables, places]
    const Word *offsets;  // [sequences, sub-tables, buckets + 1]
    int places;           // of a sub-table, a multiple of 32
    int subtables, buckets;

    __device__ __forceinline__ i64 table(i64 sequence, int s) const { return sequence * subtables + s; }

    __device__ __forceinline__ const Key *keys_of(i64 sequence, int s) const
    {
        return keys + table(sequence, s) * places;
    }

    __device__ __forceinline__ const Word *counts_of(i64 sequence, int s) const
    {
        return counts + table(sequence, s) * places;
    }

    // Where the buckets of a sub-table begin; the last offset is the end of the sub-table.
    __device__ __forceinline__ const Word *offsets_of(i64 sequence, int s) const
    {
        return offsets + table(sequence, s) * (buckets + 1);
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
    Sum sum = 0;
    while (x < x_end && y < y_end) {
        const Key x_key = x_keys[x], y_key = y_keys[y];
        if (x_key == y_key) sum += (Sum)x_counts[x] * (Sum)y_counts[y];
        // Without a branch, so that the threads of a warp stay together whichever run each advances in.
        x += x_key <= y_key;
        y += y_key <= x_key;
    }
    return sum;
}

// The same, each k-mer of one run with all of the other.
template <typename Sum, typename Key, typename Row, typename Column>
__device__ __forceinline__ Sum compare_all(
    const Key *x_keys, const Row *x_counts, int x, int x_end,
    const Key *y_keys, const Column *y_counts, int y, int y_end)
{
    Sum sum = 0;
    for (; x < x_end; x++) {
        const Key x_key = x_keys[x];
        for (int k = y; k < y_end; k++)
            if (y_keys[k] == x_key) sum += (Sum)x_counts[x] * (Sum)y_counts[k];
    }
    return sum;
}

// The sum over the lanes of a warp, in each of them.
template <typename Sum>
__device__ __forceinline__ Sum sum_of_warp(Sum value)
{
    #pragma unroll
    for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(~0u, value, apart);
    return value;
}

// Row and column of a block: consecutive blocks share 16 rows, so that what they read is in L2.
__device__ __forceinline__ void pair_of_block(int rows, int columns, int *row, int *column)
{
    const i64 group = blockIdx.x / (16ll * columns), within = blockIdx.x % (16ll * columns);
    const int height = min(16, rows - 16 * (int)group);
    *row = 16 * (int)group + (int)(within % height);
    *column = (int)(within / height);
}
