// Packed sequences: two bits a base (A=00 C=01 T=10 G=11), 32 bases to a 64-bit word, the first base in the most
// significant bits, as in hpcvdj/recombination/alphabet.py.
#pragma once

typedef unsigned long long u64;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned char u8;
typedef long long i64;

// Bits of the first `bases` bases of a word; 0 <= bases <= 32, a shift by 64 being undefined.
__device__ __forceinline__ u64 first_bases(int bases)
{
    return bases == 0 ? 0ull : ~0ull << (64 - 2 * bases);
}

__device__ __forceinline__ u64 shift_left(u64 word, int bases)
{
    return bases >= BASES_PER_WORD ? 0ull : word << (2 * bases);
}

__device__ __forceinline__ u64 shift_right(u64 word, int bases)
{
    return bases >= BASES_PER_WORD ? 0ull : word >> (2 * bases);
}

// Two words as one value of 64 bases.
struct Packed {
    u64 high, low;
};

// The sequence without its first `bases` bases, 0 <= bases <= 64 (the paper's alignment, section V-B).
__device__ __forceinline__ Packed drop_first(Packed s, int bases)
{
    if (bases >= BASES_PER_WORD) return {shift_left(s.low, bases - BASES_PER_WORD), 0ull};
    if (bases == 0) return s;
    return {s.high << (2 * bases) | s.low >> (64 - 2 * bases), s.low << (2 * bases)};
}

// The sequence behind `bases` zero bases, 0 <= bases <= 64.
__device__ __forceinline__ Packed push_back(Packed s, int bases)
{
    if (bases >= BASES_PER_WORD) return {0ull, shift_right(s.high, bases - BASES_PER_WORD)};
    if (bases == 0) return s;
    return {s.high >> (2 * bases), s.low >> (2 * bases) | s.high << (64 - 2 * bases)};
}

// Whether two sequences agree in their first `bases` bases, 0 <= bases <= 64.
__device__ __forceinline__ bool agree(Packed s, Packed t, int bases)
{
    int in_high = min(bases, BASES_PER_WORD);
    return ((s.high ^ t.high) & first_bases(in_high)) == 0 && ((s.low ^ t.low) & first_bases(bases - in_high)) == 0;
}
