// What both kernels of inference share: warps, insertions, and counts of events as integers, which add up in any order.
#pragma once

#include "../tile.cuh"

constexpr int LANES = 32;  // of a warp
constexpr unsigned ALL = 0xffffffffu;

// An insertion, in shared memory.
struct Chain {
    const double *lengths, *step, *first;
    int lags;
};

// All threads of the block: copy an insertion, with zeros behind its lengths.
__device__ __forceinline__ Chain copied(const Insertion &there, u8 *here, int zeros)
{
    const int lags = there.lengths.rows;
    double *const lengths = (double *)here, *const step = lengths + lags + zeros, *const first = step + PAIRS;
    for (int k = threadIdx.x; k < lags + zeros; k += blockDim.x) lengths[k] = k < lags ? there.lengths[k] : 0;
    if (threadIdx.x < PAIRS) step[threadIdx.x] = there.step[threadIdx.x];
    if (threadIdx.x < 4) first[threadIdx.x] = there.first[threadIdx.x];
    return {lengths, step, first, lags};
}

// 64-bit counts in shared memory, low half first: GPUs add 32 bits there at once, but loop to add 64.
struct Counts {
    u32 *halves;

    __device__ __forceinline__ void add(int place, u64 value) const
    {
        const u32 low = (u32)value;
        const u32 before = atomicAdd(halves + 2 * place, low);
        const u32 high = (u32)(value >> 32) + (before + low < before);
        if (high) atomicAdd(halves + 2 * place + 1, high);
    }

    // All threads of the block: zero the counts, after adding them to those `there`.
    __device__ __forceinline__ void flush(int size, u64 *there) const
    {
        for (int k = threadIdx.x; k < size; k += blockDim.x) {
            const u64 value = (u64)halves[2 * k + 1] << 32 | halves[2 * k];
            if (value) atomicAdd(there + k, value);
            halves[2 * k] = halves[2 * k + 1] = 0;
        }
    }
};

// What a posterior weight is in counts.
struct Scale {
    double unit;
    u64 times;  // that the junction counts

    __device__ __forceinline__ u64 operator()(double weight) const { return (u64)(i64)(weight * unit + 0.5) * times; }
};

template <typename T>
__device__ __forceinline__ T warp_sum(T value)
{
    #pragma unroll
    for (int apart = LANES / 2; apart; apart /= 2) value += __shfl_xor_sync(ALL, value, apart);
    return value;
}

// Counts of one insertion: where they are among those of both.
struct InsertionPlaces {
    int lengths, first, steps;
};
