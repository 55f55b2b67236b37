// Philox4x32-10 (Salmon et al. 2011): random numbers that are a function of a counter and a key.
#pragma once

#include "../sequence.cuh"

struct Numbers {
    u32 x[4];
};

__device__ __forceinline__ Numbers philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        const u64 a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
        c0 = (u32)(b >> 32) ^ c1 ^ k0;
        c1 = (u32)b;
        c2 = (u32)(a >> 32) ^ c3 ^ k1;
        c3 = (u32)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}
