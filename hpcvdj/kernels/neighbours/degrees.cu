// How many sequences are within one exchanged letter of each: what hpcvdj/kernels/neighbours/degrees_cpu.py does, a
// thread to a sequence, all blocks of (class, length) in one hash table for each place.
//
// A slot has the number of the first sequence that took it, and 32 bits of its hash.  Sequences that are equal outside
// the place share a slot; whether they are equal is decided by their letters, so the sums are exact.  Which sequence
// comes first depends on the threads, the sums do not.

#include "../sequence.cuh"

constexpr u64 EMPTY = ~0ull;

// The finaliser of splitmix64, as degrees_cpu.py has it.
__device__ __forceinline__ u64 mixed(u64 value)
{
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9ull;
    value = (value ^ value >> 27) * 0x94D049BB133111EBull;
    return value ^ value >> 31;
}

// What a letter at a place adds to a sequence's hash.
__device__ __forceinline__ u64 share(u8 letter, int place)
{
    return mixed(((u64)letter << 32) + place + 0x9E3779B97F4A7C15ull);
}

// Hashes of the sequences with their blocks, and the weights that the places count too often.
extern "C" __global__ void begin(
    const u8 *letters,        // [rows, width]
    int width,
    const int *lengths,       // [rows]
    const int *block,         // [rows]
    const i64 *weights,       // [rows, kinds]
    int kinds,
    i64 rows,
    u64 *hashes,              // [rows]
    i64 *out)                 // [rows, kinds]
{
    for (i64 row = threadIdx.x + (i64)blockIdx.x * blockDim.x; row < rows; row += (i64)gridDim.x * blockDim.x) {
        u64 hash = mixed(block[row] + 0x9E3779B97F4A7C15ull);
        for (int k = 0; k < lengths[row]; k++) hash += share(letters[row * width + k], k);
        hashes[row] = hash;
        for (int kind = 0; kind < kinds; kind++)
            out[row * kinds + kind] = (1 - lengths[row]) * weights[row * kinds + kind];
    }
}

// Whether two sequences are of one block and equal outside `place`.
__device__ __forceinline__ bool same_without(
    const u8 *letters, int width, const int *lengths, const int *block, i64 a, i64 b, int place)
{
    if (block[a] != block[b]) return false;
    for (int k = 0; k < lengths[a]; k++)
        if (k != place && letters[a * width + k] != letters[b * width + k]) return false;
    return true;
}

// The weights of sequences that are equal outside `place`, added up in their slot; `slots` is empty, `sums` is 0.
extern "C" __global__ void add(
    const u8 *letters, int width, const int *lengths, const int *block, const i64 *weights, int kinds, i64 rows,
    const u64 *hashes,
    int place,
    int bits,                 // of a slot's number; at least twice as many slots as sequences
    u64 *slots,               // [1 << bits]: hash << 32 | row
    u64 *sums,                // [1 << bits, kinds]
    u32 *slot_of)             // [rows]
{
    const u64 last = (1ull << bits) - 1;
    for (i64 row = threadIdx.x + (i64)blockIdx.x * blockDim.x; row < rows; row += (i64)gridDim.x * blockDim.x) {
        if (lengths[row] <= place) continue;
        const u64 key = mixed(hashes[row] - share(letters[row * width + place], place));
        const u64 own = key << 32 | (u64)row;
        u64 slot = key >> (64 - bits);
        while (true) {
            // A slot is taken once and then stays: a value that is out of date is EMPTY, and the exchange shows it.
            u64 held = *(volatile u64 *)(slots + slot);
            if (held == EMPTY) held = atomicCAS(slots + slot, EMPTY, own);
            if (held == EMPTY) break;
            const bool alike = held >> 32 == own >> 32;
            if (alike && same_without(letters, width, lengths, block, held & 0xffffffffull, row, place)) break;
            slot = (slot + 1) & last;
        }
        slot_of[row] = (u32)slot;
        for (int kind = 0; kind < kinds; kind++)
            atomicAdd(sums + slot * kinds + kind, (u64)weights[row * kinds + kind]);
    }
}

// What was added up in the slot of each sequence.
extern "C" __global__ void take(
    const int *lengths, int kinds, i64 rows, int place, const u64 *sums, const u32 *slot_of, i64 *out)
{
    for (i64 row = threadIdx.x + (i64)blockIdx.x * blockDim.x; row < rows; row += (i64)gridDim.x * blockDim.x) {
        if (lengths[row] <= place) continue;
        for (int kind = 0; kind < kinds; kind++)
            out[row * kinds + kind] += (i64)sums[(u64)slot_of[row] * kinds + kind];
    }
}
