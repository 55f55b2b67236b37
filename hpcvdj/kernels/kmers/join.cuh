#pragma once
// Tables of k-mers by some of their positions (join.py).  The host defines MAX_D, FIELDS, TABLE_BYTES and the halves of
// HASH_FACTOR.

#include "../sequence.cuh"

// The kept positions of a table are at most FIELDS runs; without the gaps they are a number of key_bits bits.
struct Field {
    int right, left;
    u64 mask;
};

struct Table {
    Field field[FIELDS];
    u64 mask;
    u64 left_out[MAX_D];
    u32 counts;  // bit p: whether the table counts pairs that differ on the runs p of left_out
    int key_bits;
    int plane;   // of `index`: the counter that it adds to
    int unused;
};
static_assert(sizeof(Table) == TABLE_BYTES, "host and device agree on Table");

// The bucket of a k-mer: its kept positions, spread over the buckets if there are fewer, hashed if there are more.  Spread,
// as a gap between two used buckets is filled by one thread.
__device__ inline u32 bucket_of(const Table &table, u64 key, int bits)
{
    u64 closed = 0;
    for (int f = 0; f < FIELDS; f++)
        closed |= (key >> table.field[f].right & table.field[f].mask) << table.field[f].left;
    if (table.key_bits <= bits) return (u32)(closed << (bits - table.key_bits));
    return (u32)(closed * ((u64)HASH_FACTOR_HIGH << 32 | HASH_FACTOR_LOW) >> (64 - bits));
}
