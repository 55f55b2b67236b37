// What the enumerating kernels share: forms, the task of a thread.
#pragma once

#include "../tile.cuh"

// Where the forms of a V-J pair are in the tables of forms; the shortest first.
struct Pair {
    int v_first, v_forms;
    int j_first, j_forms;
};

// The n-nucleotide of a thread, equation (1): the rank's block range starts at task `first`.
__device__ __forceinline__ i64 task_of_thread(i64 first)
{
    return first + threadIdx.x + (i64)blockIdx.x * blockDim.x;
}

// First of the `share`-th of gridDim.z equal shares of `total`.
__device__ __forceinline__ int first_of_share(int total, int share)
{
    return (int)((i64)total * share / gridDim.z);
}

// The block's counts, one global atomic per sequence that has any.
__device__ __forceinline__ void add_counts(const u64 *counts, const Tile &tile, u64 *counters)
{
    for (int k = threadIdx.x; k < tile.rows; k += blockDim.x)
        if (counts[k] != 0) atomicAdd(&counters[tile.row + k], counts[k]);
}
