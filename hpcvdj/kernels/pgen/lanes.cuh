// Numbers with and without slopes, and the four lanes of a sequence, each of which has a component of its weights.
#pragma once

#include "../sequence.cuh"

// A number and its slope, as ball_cpu.py has them.
struct __align__(16) Dual {
    double value, slope;
};

__device__ __forceinline__ Dual operator+(const Dual &a, const Dual &b)
{
    return {a.value + b.value, a.slope + b.slope};
}

__device__ __forceinline__ Dual operator*(const Dual &a, double b)
{
    return {a.value * b, a.slope * b};
}

__device__ __forceinline__ Dual operator*(const Dual &a, const Dual &b)
{
    return {a.value * b.value, a.value * b.slope + a.slope * b.value};
}

__device__ __forceinline__ Dual &operator+=(Dual &a, const Dual &b)
{
    return a = a + b;
}

template <typename N>
constexpr bool HAS_SLOPE = false;
template <>
constexpr bool HAS_SLOPE<Dual> = true;

// The numbers of a kernel, with slopes or without.
template <bool SLOPES>
struct Numbers {
    typedef double type;
};

template <>
struct Numbers<true> {
    typedef Dual type;
};

// A table's row of a symbol; the row of any residue is its slope.
template <typename N>
struct OfSymbol {
    Values<double> own;

    __device__ __forceinline__ OfSymbol(const Values<double> &table, int width, int symbol)
        : own(table + width * symbol)
    {
    }

    __device__ __forceinline__ N operator[](int k) const { return own[k]; }
};

template <>
struct OfSymbol<Dual> {
    Values<double> own, any;

    __device__ __forceinline__ OfSymbol(const Values<double> &table, int width, int symbol)
        : own(table + width * symbol), any(table + width * ANY_RESIDUE)
    {
    }

    __device__ __forceinline__ Dual operator[](int k) const { return {own[k], any[k]}; }
};

template <typename N>
struct __align__(16) Four {
    N of[COMPONENTS];
};

__device__ __forceinline__ Four<double> four(const Values<double> &from)
{
    const double2 low = __ldg((const double2 *)from.at), high = __ldg((const double2 *)from.at + 1);
    return {low.x, low.y, high.x, high.y};
}

__device__ __forceinline__ Four<Dual> four(const Four<double> &values, const Four<double> &slopes)
{
    Four<Dual> both;
    #pragma unroll
    for (int c = 0; c < COMPONENTS; c++) both.of[c] = {values.of[c], slopes.of[c]};
    return both;
}

__device__ __forceinline__ Four<double> four(const OfSymbol<double> &from, int k)
{
    return four(from.own + k);
}

__device__ __forceinline__ Four<Dual> four(const OfSymbol<Dual> &from, int k)
{
    return four(four(from.own + k), four(from.any + k));
}

// The four lanes of a sequence; all lanes of the warp call its functions together.
struct Lanes {
    static constexpr u32 ALL = ~0u;
    const int own;

    __device__ __forceinline__ Lanes() : own(threadIdx.x % COMPONENTS) {}

    __device__ __forceinline__ double of(double a, int lane) const
    {
        return __shfl_sync(ALL, a, lane, COMPONENTS);
    }

    __device__ __forceinline__ Dual of(const Dual &a, int lane) const
    {
        return {of(a.value, lane), of(a.slope, lane)};
    }

    // In the same order on each lane.
    template <typename N>
    __device__ __forceinline__ N sum(const N &a) const
    {
        return (of(a, 0) + of(a, 1)) + (of(a, 2) + of(a, 3));
    }

    // The own component of a weight after a 4 x 4 table.
    template <typename N, typename T>
    __device__ __forceinline__ N through(const N &a, const T &table) const
    {
        N sum = of(a, 0) * table[own];
        #pragma unroll
        for (int c = 1; c < COMPONENTS; c++) sum += of(a, c) * table[COMPONENTS * c + own];
        return sum;
    }

    // The own component of a weight after a 4 x 4 table of which each lane has a row.
    template <typename N>
    __device__ __forceinline__ N through(const N &a, const Four<N> &row) const
    {
        const bool high = own & 2, odd = own & 1;
        const N first = exchanged(a * row.of[0], a * row.of[2], high, 2);
        const N second = exchanged(a * row.of[1], a * row.of[3], high, 2);
        return exchanged(first, second, odd, 1);
    }

    __device__ __forceinline__ void wait() const { __syncwarp(ALL); }

    __device__ __forceinline__ bool any(bool own) const { return __ballot_sync(ALL, own) != 0; }

    // For which of the sequence's lanes it is true: a bit for each.
    __device__ __forceinline__ u32 which(bool of_lane) const
    {
        const int first = threadIdx.x % 32 - own;
        return __ballot_sync(ALL, of_lane) >> first & ((1u << COMPONENTS) - 1);
    }

    // The largest of the warp.
    __device__ __forceinline__ int largest(int a) const
    {
        for (int distance = 16; distance > 0; distance /= 2) a = max(a, __shfl_xor_sync(ALL, a, distance));
        return a;
    }

  private:
    // One of two values, and the same of another lane, which gets the other.
    __device__ __forceinline__ double exchanged(double a, double b, bool takes_b, int distance) const
    {
        return (takes_b ? b : a) + __shfl_xor_sync(ALL, takes_b ? a : b, distance);
    }

    __device__ __forceinline__ Dual exchanged(const Dual &a, const Dual &b, bool takes_b, int distance) const
    {
        return {exchanged(a.value, b.value, takes_b, distance), exchanged(a.slope, b.slope, takes_b, distance)};
    }
};
