// Methods `index` and `pigeonhole`: a block takes a row, its warps the row's k-mers, its lanes the k-mers of the columns
// that lie in the same bucket.  The row's counters are in shared memory.
#include "motif_join.cuh"

// order[t * kmers + p] = (t's bucket of k-mer p) << place_bits | p, with the tables' buckets one after another.
extern "C" __global__ void bucket_order(const word *key, long long kmers, const Table *tables, int first_table, int bits,
                                        int place_bits, word *order)
{
    const long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (p >= kmers)
        return;
    const int t = blockIdx.y;
    const word bucket = ((word)t << bits) | bucket_of(tables[first_table + t], key[p], bits);
    order[t * kmers + p] = bucket << place_bits | (word)p;
}

// Entries in their order: key, and sequence | count << 16.  offsets[b] is the first entry of bucket b; position[t, p]
// is where k-mer p's sequence begins in its bucket of table t.  All count from entry `base` on.
template <typename Key>
__global__ void fill_buckets(const word *order, long long entries, long long kmers, int bits, int place_bits,
                             unsigned base, const word *key, const int *sequence, const unsigned *count,
                             unsigned buckets, Key *sorted, unsigned *payload, unsigned *offsets, unsigned *position)
{
    const long long e = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (e >= entries)
        return;
    const word low_bits = ((word)1 << place_bits) - 1, place = order[e] & low_bits;
    sorted[e] = (Key)key[place];
    payload[e] = (unsigned)sequence[place] | count[place] << 16;
    const unsigned bucket = (unsigned)(order[e] >> place_bits);
    long long begin = e;
    const word lowest = (word)bucket << place_bits;
    while (begin && order[begin - 1] >= lowest && sequence[order[begin - 1] & low_bits] == sequence[place])
        begin--;
    position[(long long)(bucket >> bits) * kmers + place] = base + (unsigned)begin;
    const unsigned before = e ? (unsigned)(order[e - 1] >> place_bits) + 1 : 0;
    for (unsigned b = before; b <= bucket; b++)
        offsets[b] = base + (unsigned)e;
    if (e == entries - 1)
        for (unsigned b = bucket + 1; b <= buckets; b++)
            offsets[b] = base + (unsigned)entries;
}

// found[(h * rows + r) * columns + j]: D_h (exact) or R_h (raw) of row r and column j; row r is sequence first + r of
// the columns' set, and columns before it are left out, if first >= 0.  For rows that are columns themselves, `position`
// tells where their k-mers lie, the rows' k-mer 0 being k-mer `shift` of the columns; what stands before them in their
// buckets is of columns before them.
template <typename Key, bool raw>
__global__ void join(const word *row_key, const unsigned *row_count, const long long *row_offsets, int rows, int first,
                     const Table *tables, int table_count, int bits, const Key *key, const unsigned *payload,
                     const unsigned *offsets, const unsigned *position, long long shift, long long kmers, int columns,
                     int d, const unsigned short *run_bit,
                     const short *first_table, unsigned *found)
{
    extern __shared__ unsigned counters[];
    const int r = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int low = first >= 0 ? first + r : 0;
    const int size = (d + 1) * columns;
    for (int c = threadIdx.x; c < size; c += blockDim.x)
        counters[c] = 0;
    __syncthreads();
    const long long mine = row_offsets[r];
    const int own = (int)(row_offsets[r + 1] - mine);
    const long long items = (long long)own * table_count;
    for (long long base = warp * 32ll; base < items; base += warps * 32ll) {
        // Each lane looks up one k-mer in one table; then all lanes go over what each of them has found.
        const long long item = base + lane;
        word x = 0;
        unsigned start = 0, stop = 0, f = 0;
        int t = 0;
        if (item < items) {
            t = (int)(item / own);
            const long long p = mine + item % own;
            x = row_key[p];
            f = row_count[p];
            const unsigned long long bucket = ((word)t << bits) | bucket_of(tables[t], x, bits);
            start = position ? position[t * kmers + p + shift] : offsets[bucket];
            stop = offsets[bucket + 1];
        }
        unsigned busy = __ballot_sync(0xffffffffu, start < stop);
        while (busy) {
            const int owner = __ffs(busy) - 1;
            busy &= busy - 1;
            const unsigned from = __shfl_sync(0xffffffffu, start, owner), to = __shfl_sync(0xffffffffu, stop, owner);
            const word wanted = __shfl_sync(0xffffffffu, x, owner);
            const unsigned times = __shfl_sync(0xffffffffu, f, owner);
            const int table = __shfl_sync(0xffffffffu, t, owner);
            const word mask = raw ? tables[table].mask : 0;
            const int plane = raw ? tables[table].plane : 0;
            for (unsigned e = from + lane; e < to; e += 32) {
                word z = (word)key[e] ^ wanted;
                int h = plane;
                bool hit;
                if (raw) {
                    hit = !(z & mask);
                } else {
                    z = (z | z >> 1) & 0x5555555555555555ull;
                    h = __popcll(z);
                    hit = h <= d;
                    if (hit) {
                        unsigned differing = 0;
                        for (; z; z &= z - 1)
                            differing |= run_bit[__ffsll((long long)z) - 1];
                        hit = first_table[differing] == table;
                    }
                }
                if (hit) {
                    const unsigned load = payload[e];
                    const int j = (int)(load & 0xffff);
                    if (j >= low)
                        atomicAdd(&counters[h * columns + j], times * (load >> 16));
                }
            }
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < size; c += blockDim.x) {
        const int h = c / columns;
        found[((long long)h * rows + r) * columns + (c - h * columns)] = counters[c];
    }
}
