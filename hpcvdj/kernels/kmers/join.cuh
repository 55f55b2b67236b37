#pragma once
// Tables of k-mers by some of their positions.

typedef unsigned long long word;

// The kept positions of a table are at most four runs, which close up to a number of 2 bases bits.
struct Field {
    int right, left;
    word mask;
};

struct Table {
    Field field[4];
    word mask;
    int key_bits;
    int plane;
};

// The bucket of a k-mer: its kept positions, spread over the buckets if they are fewer, hashed (Knuth, TAOCP 3, 6.4) if
// they are more.  Spread, since a gap between two buckets in use is filled by one thread.
__device__ inline unsigned bucket_of(const Table &table, word key, int bits)
{
    word closed = 0;
    for (int f = 0; f < 4; f++)
        closed |= (key >> table.field[f].right & table.field[f].mask) << table.field[f].left;
    return table.key_bits <= bits ? (unsigned)(closed << (bits - table.key_bits)) : (unsigned)(closed * 0x9E3779B97F4A7C15ull >> (64 - bits));
}
