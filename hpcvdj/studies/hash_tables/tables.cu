// The thesis's comparison kernels (section 3.c), on hash tables of k-mers as construction.py lays them out.
//
// compare_buckets is three of them, which differ in who compares a pair of buckets: the block (Sequential Bucket), a
// warp (Warp to Bucket) or a thread (Thread to Bucket).  A block has one pair of sequences; the k-mers and counters of a
// sub-table are read into shared memory, offsets through the read-only cache.
//
// compare_pairs is Thread to Pair: the block's row is in shared memory, each thread has one column and a few k-mers of
// it, in buckets merged to one.
//
// Both compare the sequences first ... first + rows - 1 with those from the row's own on.  Count is the type of counters
// and offsets, Sum that of the results.

#include "../../kernels/sequence.cuh"

#define BLOCK 0  // TEAM: threads that share a bucket; 0 for all of the block

// One sub-table: the buckets begin at the offsets; the last offset is the end of the sub-table.
template <typename Key, typename Count>
struct SubTable {
    const Key *keys;
    const Count *counts, *offsets;

    __device__ __forceinline__ int bound(int b) const { return (int)__ldg(offsets + b); }
};

// The tables of all sequences.
template <typename Key, typename Count>
struct Tables {
    const Key *keys;       // [sequences, sub-tables, slots]
    const Count *counts;   // [sequences, sub-tables, slots]
    const Count *offsets;  // [sequences, sub-tables, buckets + 1]
    int slots;             // of a sub-table, a multiple of 32
    int subtables, buckets;

    __device__ __forceinline__ SubTable<Key, Count> of(i64 sequence, int s) const
    {
        const i64 table = sequence * subtables + s;
        return {keys + table * slots, counts + table * slots, offsets + table * (buckets + 1)};
    }
};

// `entries` elements by the whole block, 16 bytes a thread; both ends have room for whole 16 bytes.
template <typename T>
__device__ __forceinline__ void copy_to_shared(T *to, const T *from, int entries)
{
    const int quads = (entries * (int)sizeof(T) + 15) / 16;
    for (int k = threadIdx.x; k < quads; k += blockDim.x) ((uint4 *)to)[k] = __ldg((const uint4 *)from + k);
}

// Products of the counters of k-mers that are in both sorted runs, in linear time.
template <typename Sum, typename Key, typename Count>
__device__ __forceinline__ Sum merge_runs(
    const Key *x_keys, const Count *x_counts, int x, int x_end,
    const Key *y_keys, const Count *y_counts, int y, int y_end)
{
    Sum sum = 0;
    while (x < x_end && y < y_end) {
        const Key x_key = x_keys[x], y_key = y_keys[y];
        if (x_key == y_key) sum += (Sum)x_counts[x] * (Sum)y_counts[y];
        // Without a branch, so that the threads of a warp stay together whichever run each advances in.
        x += x_key <= y_key;
        y += y_key <= x_key;
    }
    return sum;
}

// The same, each k-mer of one run with all of the other.
template <typename Sum, typename Key, typename Count>
__device__ __forceinline__ Sum compare_all(
    const Key *x_keys, const Count *x_counts, int x, int x_end,
    const Key *y_keys, const Count *y_counts, int y, int y_end)
{
    Sum sum = 0;
    for (; x < x_end; x++) {
        const Key x_key = x_keys[x];
        for (int k = y; k < y_end; k++)
            if (y_keys[k] == x_key) sum += (Sum)x_counts[x] * (Sum)y_counts[k];
    }
    return sum;
}

// The sum over the lanes of a warp, in each of them.
template <typename Sum>
__device__ __forceinline__ Sum sum_of_warp(Sum value)
{
    #pragma unroll
    for (int apart = 16; apart; apart /= 2) value += __shfl_xor_sync(~0u, value, apart);
    return value;
}

// Row and column of a block: consecutive blocks share 16 rows, so that what they read is in L2.
__device__ __forceinline__ void pair_of_block(int rows, int columns, int *row, int *column)
{
    const i64 group = blockIdx.x / (16ll * columns), within = blockIdx.x % (16ll * columns);
    const int height = min(16, rows - 16 * (int)group);
    *row = 16 * (int)group + (int)(within % height);
    *column = (int)(within / height);
}

// LINEAR: merge two buckets; else every k-mer of one is compared with every one of the other.  THREADS, RESIDENT: of a
// block, and blocks that a multiprocessor has room for.
template <typename Key, typename Count, typename Sum, int TEAM, bool LINEAR, int THREADS, int RESIDENT>
__global__ void __launch_bounds__(THREADS, RESIDENT) compare_buckets(
    const Key *__restrict__ keys, const Count *__restrict__ counts, const Count *__restrict__ offsets,
    int sequences, int slots,
    const int *__restrict__ ends,   // [distances] sub-tables of meta-tables 0 ... m
    int distances, int buckets, int first, int rows,
    Sum *__restrict__ out)          // [distances, rows, sequences]
{
    extern __shared__ __align__(16) u8 shared[];
    __shared__ Sum partial[THREADS / 32];
    int row, column;
    pair_of_block(rows, sequences, &row, &column);
    if (column < first + row) return;

    const Tables<Key, Count> tables = {keys, counts, offsets, slots, ends[distances - 1], buckets};
    Key *x_keys = (Key *)shared, *y_keys = x_keys + slots;
    Count *x_counts = (Count *)(y_keys + slots), *y_counts = x_counts + slots;
    const int size = TEAM == BLOCK ? blockDim.x : TEAM;
    const int team = threadIdx.x / size, member = threadIdx.x % size, teams = blockDim.x / size;

    int s = 0;
    for (int m = 0; m < distances; m++) {
        Sum sum = 0;
        for (; s < ends[m]; s++) {
            const SubTable<Key, Count> x_table = tables.of(first + row, s), y_table = tables.of(column, s);
            __syncthreads();  // nobody still reads the sub-table before
            copy_to_shared(x_keys, x_table.keys, x_table.bound(buckets));
            copy_to_shared(x_counts, x_table.counts, x_table.bound(buckets));
            copy_to_shared(y_keys, y_table.keys, y_table.bound(buckets));
            copy_to_shared(y_counts, y_table.counts, y_table.bound(buckets));
            __syncthreads();
            for (int b = team; b < buckets; b += teams) {
                int x = x_table.bound(b), x_end = x_table.bound(b + 1);
                const int y = y_table.bound(b), y_end = y_table.bound(b + 1);
                if (TEAM != 1) {
                    // A run of the row's k-mers for each member of the team.
                    const int each = (x_end - x + size - 1) / size;
                    x += member * each;
                    x_end = min(x_end, x + each);
                }
                sum += LINEAR ? merge_runs<Sum>(x_keys, x_counts, x, x_end, y_keys, y_counts, y, y_end)
                              : compare_all<Sum>(x_keys, x_counts, x, x_end, y_keys, y_counts, y, y_end);
            }
        }
        sum = sum_of_warp(sum);
        if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            Sum total = 0;
            for (int warp = 0; warp < (int)blockDim.x / 32; warp++) total += partial[warp];
            out[((i64)m * rows + row) * sequences + column] = total;
        }
        __syncthreads();  // before the next distance's sums overwrite these
    }
}

template <typename Key, typename Count, typename Sum>
__global__ void __launch_bounds__(1024) compare_pairs(
    const Key *__restrict__ keys, const Count *__restrict__ counts, const Count *__restrict__ offsets,
    int sequences, int slots, const int *__restrict__ ends, int distances,
    int chunk,                      // k-mers of its column that a thread has in shared memory
    int first, int rows, Sum *__restrict__ out)
{
    extern __shared__ __align__(16) u8 shared[];
    Key *fixed = (Key *)shared;                                // [slots]
    Key *fetched = fixed + slots + threadIdx.x;               // [chunk, threads]
    const int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x;
    const int last = min((int)(blockIdx.x * blockDim.x + blockDim.x), sequences) - 1;
    if (last < first + row) return;
    const bool wanted = column < sequences && column >= first + row;
    const Tables<Key, Count> tables = {keys, counts, offsets, slots, ends[distances - 1], 1};

    int s = 0;
    for (int m = 0; m < distances; m++) {
        Sum sum = 0;
        for (; s < ends[m]; s++) {
            const SubTable<Key, Count> x_table = tables.of(first + row, s), y_table = tables.of(column, s);
            const int x_length = x_table.bound(1), y_length = wanted ? y_table.bound(1) : 0;
            __syncthreads();
            copy_to_shared(fixed, x_table.keys, x_length);
            __syncthreads();
            int x = 0, y = 0, cached = 0, here = 0;
            while (x < x_length && y < y_length) {
                if (y == cached) {
                    // The chunk is used up: fetch the next one, while the warp's other threads wait.
                    const int more = min(chunk, y_length - y);
                    for (int k = 0; k < more; k++) fetched[k * stride] = __ldg(y_table.keys + y + k);
                    cached = y + more;
                    here = 0;
                }
                const Key y_key = fetched[here * stride], x_key = fixed[x];
                if (x_key == y_key) sum += (Sum)__ldg(x_table.counts + x) * (Sum)__ldg(y_table.counts + y);
                const int moves = y_key <= x_key;
                x += x_key <= y_key;
                y += moves;
                here += moves;
            }
        }
        if (wanted) out[((i64)m * rows + row) * sequences + column] = sum;
    }
}
