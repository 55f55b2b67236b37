// Methods `index` and `pigeonhole`: a block takes a row, its warps the row's k-mers, its lanes the k-mers of the columns
// in the same bucket.  The row's counters are in shared memory.  masks.py describes the tables.
//
// The host defines MAX_D, FIELDS, TABLE_BYTES and the halves of HASH_FACTOR.
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

// order[t * kmers + p] = (t's bucket of k-mer p) << place_bits | p, with the tables' buckets one after another.
extern "C" __global__ void bucket_order(const u64 *key, i64 kmers, const Table *tables, int first_table, int bits,
                                        int place_bits, u64 *order)
{
    const i64 p = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (p >= kmers) return;
    const int t = blockIdx.y;
    const u64 bucket = ((u64)t << bits) | bucket_of(tables[first_table + t], key[p], bits);
    order[t * kmers + p] = bucket << place_bits | (u64)p;
}

// The entries in their order: key, and sequence | count << 16.  offsets[b] is the first entry of bucket b; position[t, p]
// is the first entry of k-mer p's sequence in its bucket of table t.  All are numbered from `base`.
template <typename Key>
__global__ void fill_buckets(const u64 *order, i64 entries, i64 kmers, int bits, int place_bits, u32 base,
                             const u64 *key, const int *sequence, const u32 *count, u32 buckets, Key *sorted,
                             u32 *payload, u32 *offsets, u32 *position)
{
    const i64 e = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    if (e >= entries) return;
    const u64 low_bits = ((u64)1 << place_bits) - 1, place = order[e] & low_bits;
    sorted[e] = (Key)key[place];
    payload[e] = (u32)sequence[place] | count[place] << 16;
    const u32 bucket = (u32)(order[e] >> place_bits);
    i64 begin = e;
    const u64 lowest = (u64)bucket << place_bits;
    while (begin && order[begin - 1] >= lowest && sequence[order[begin - 1] & low_bits] == sequence[place]) begin--;
    position[(i64)(bucket >> bits) * kmers + place] = base + (u32)begin;
    const u32 before = e ? (u32)(order[e - 1] >> place_bits) + 1 : 0;
    for (u32 b = before; b <= bucket; b++) offsets[b] = base + (u32)e;
    if (e == entries - 1)
        for (u32 b = bucket + 1; b <= buckets; b++) offsets[b] = base + (u32)entries;
}

// counters[(h * rows + r) * columns + j]: D_h, or R_h if raw, of row r and column j.
//
// If first >= 0, row r is sequence first + r of the columns' set, and columns before it are left out.  For rows that are
// columns themselves, `position` says where their k-mers are in the tables, the rows' k-mer 0 being k-mer `shift` of the
// columns; what precedes them in their buckets is of earlier columns.
template <typename Key, bool raw>
__global__ void join(const u64 *row_key, const u32 *row_count, const i64 *row_offsets, int rows, int first,
                     const Table *tables, int table_count, int bits, const Key *key, const u32 *payload,
                     const u32 *offsets, const u32 *position, i64 shift, i64 kmers, int columns, int d, u32 *counters)
{
    extern __shared__ u32 local[];
    const int r = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const int first_column = first >= 0 ? first + r : 0;
    const int size = (d + 1) * columns;
    for (int c = threadIdx.x; c < size; c += blockDim.x) local[c] = 0;
    __syncthreads();
    const i64 first_kmer = row_offsets[r];
    const int own = (int)(row_offsets[r + 1] - first_kmer);
    const i64 items = (i64)own * table_count;
    for (i64 base = warp * 32ll; base < items; base += warps * 32ll) {
        // Each lane looks up one k-mer in one table; then all lanes go through what each of them found.
        const i64 item = base + lane;
        u64 x = 0;
        u32 start = 0, stop = 0, f = 0;
        int t = 0;
        if (item < items) {
            t = (int)(item / own);
            const i64 p = first_kmer + item % own;
            x = row_key[p];
            f = row_count[p];
            const u64 bucket = ((u64)t << bits) | bucket_of(tables[t], x, bits);
            start = position ? position[t * kmers + p + shift] : offsets[bucket];
            stop = offsets[bucket + 1];
        }
        u32 busy = __ballot_sync(0xffffffffu, start < stop);
        while (busy) {
            const int owner = __ffs(busy) - 1;
            busy &= busy - 1;
            const u32 from = __shfl_sync(0xffffffffu, start, owner), to = __shfl_sync(0xffffffffu, stop, owner);
            const u64 wanted = __shfl_sync(0xffffffffu, x, owner);
            const u32 times = __shfl_sync(0xffffffffu, f, owner);
            const Table &table = tables[__shfl_sync(0xffffffffu, t, owner)];
            const u64 mask = table.mask;
            const int plane = raw ? table.plane : 0;
            for (u32 e = from + lane; e < to; e += 32) {
                u64 z = (u64)key[e] ^ wanted;
                if (z & mask) continue;
                int h = plane;
                if (!raw) {
                    z = (z | z >> 1) & 0x5555555555555555ull;
                    h = __popcll(z);
                    if (h > d) continue;
                    u32 differing = 0;
                    #pragma unroll
                    for (int u = 0; u < MAX_D; u++) differing |= (u32)((z & table.left_out[u]) != 0) << u;
                    if (!(table.counts >> differing & 1)) continue;
                }
                const u32 load = payload[e];
                const int j = (int)(load & 0xffff);
                if (j >= first_column) atomicAdd(&local[h * columns + j], times * (load >> 16));
            }
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < size; c += blockDim.x) {
        const int h = c / columns;
        counters[((i64)h * rows + r) * columns + (c - h * columns)] = local[c];
    }
}
