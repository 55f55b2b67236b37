// The thesis's comparison kernels (section 3.c).
//
// compare_buckets is three of them, which differ in who compares a pair of buckets: the block (Sequential Bucket), a
// warp (Warp to Bucket) or a thread (Thread to Bucket).  A block has one pair of sequences; the k-mers and counters of a
// sub-table are read into shared memory, offsets through the read-only cache.
//
// compare_pairs is Thread to Pair: the block's row is in shared memory, each thread has one column and a few k-mers of
// it, in buckets merged to one.

#include "tables.cuh"

#define BLOCK 0  // TEAM: threads that share a bucket; 0 for all of the block

// LINEAR: merge two buckets; else every k-mer of one is compared with every one of the other.  THREADS, RESIDENT: of a
// block, and blocks that a multiprocessor has room for.
template <typename Key, typename Row, typename Column, typename Sum, int TEAM, bool LINEAR, int THREADS, int RESIDENT>
__global__ void __launch_bounds__(THREADS, RESIDENT) compare_buckets(
    const Key *__restrict__ row_keys, const Row *__restrict__ row_counts, const Row *__restrict__ row_offsets,
    i64 first_row, int rows, int row_places,
    const Key *__restrict__ column_keys, const Column *__restrict__ column_counts,
    const Column *__restrict__ column_offsets, int columns, int column_places,
    const int *__restrict__ ends,   // [distances] sub-tables of meta-tables 0 ... m
    int distances, int buckets,
    i64 diagonal,                   // columns from diagonal + row on are compared
    Sum *__restrict__ out)          // [distances, rows, columns]
{
    extern __shared__ __align__(16) u8 shared[];
    __shared__ Sum partial[THREADS / 32];
    int row, column;
    pair_of_block(rows, columns, &row, &column);
    if (column < diagonal + row) return;

    const int subtables = ends[distances - 1];
    const Tables<Key, Row> x_tables = {row_keys, row_counts, row_offsets, row_places, subtables, buckets};
    const Tables<Key, Column> y_tables = {column_keys, column_counts, column_offsets, column_places, subtables, buckets};
    Key *x_keys = (Key *)shared, *y_keys = x_keys + row_places;
    Row *x_counts = (Row *)(y_keys + column_places);
    Column *y_counts = (Column *)(x_counts + row_places);
    const int size = TEAM == BLOCK ? blockDim.x : TEAM;
    const int team = threadIdx.x / size, member = threadIdx.x % size, teams = blockDim.x / size;

    int s = 0;
    for (int m = 0; m < distances; m++) {
        Sum sum = 0;
        for (; s < ends[m]; s++) {
            const Row *x_bounds = x_tables.offsets_of(first_row + row, s);
            const Column *y_bounds = y_tables.offsets_of(column, s);
            const int x_length = (int)__ldg(x_bounds + buckets), y_length = (int)__ldg(y_bounds + buckets);
            __syncthreads();  // nobody still reads the sub-table before
            copy_to_shared(x_keys, x_tables.keys_of(first_row + row, s), x_length);
            copy_to_shared(x_counts, x_tables.counts_of(first_row + row, s), x_length);
            copy_to_shared(y_keys, y_tables.keys_of(column, s), y_length);
            copy_to_shared(y_counts, y_tables.counts_of(column, s), y_length);
            __syncthreads();
            for (int b = team; b < buckets; b += teams) {
                int x = (int)__ldg(x_bounds + b), x_end = (int)__ldg(x_bounds + b + 1);
                const int y = (int)__ldg(y_bounds + b), y_end = (int)__ldg(y_bounds + b + 1);
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
            out[((i64)m * rows + row) * columns + column] = total;
        }
        __syncthreads();  // before the next distance's sums overwrite these
    }
}

template <typename Key, typename Row, typename Column, typename Sum>
__global__ void __launch_bounds__(1024) compare_pairs(
    const Key *__restrict__ row_keys, const Row *__restrict__ row_counts, const Row *__restrict__ row_offsets,
    i64 first_row, int rows, int row_places,
    const Key *__restrict__ column_keys, const Column *__restrict__ column_counts,
    const Column *__restrict__ column_offsets, int columns, int column_places,
    const int *__restrict__ ends, int distances,
    int chunk,                      // k-mers of its column that a thread has in shared memory
    i64 diagonal,
    Sum *__restrict__ out)
{
    extern __shared__ __align__(16) u8 shared[];
    Key *fixed = (Key *)shared;                                // [row_places]
    Key *own = fixed + row_places + threadIdx.x;               // [chunk, threads]
    const int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x;
    const int last = min((int)(blockIdx.x * blockDim.x + blockDim.x), columns) - 1;
    if (last < diagonal + row) return;
    const bool wanted = column < columns && column >= diagonal + row;
    const int subtables = ends[distances - 1];
    const Tables<Key, Row> x_tables = {row_keys, row_counts, row_offsets, row_places, subtables, 1};
    const Tables<Key, Column> y_tables = {column_keys, column_counts, column_offsets, column_places, subtables, 1};

    int s = 0;
    for (int m = 0; m < distances; m++) {
        Sum sum = 0;
        for (; s < ends[m]; s++) {
            // One bucket: the offsets are 0 and the length.
            const int x_length = (int)__ldg(x_tables.offsets_of(first_row + row, s) + 1);
            const int y_length = wanted ? (int)__ldg(y_tables.offsets_of(column, s) + 1) : 0;
            __syncthreads();
            copy_to_shared(fixed, x_tables.keys_of(first_row + row, s), x_length);
            __syncthreads();
            int x = 0, y = 0, cached = 0, here = 0;
            while (x < x_length && y < y_length) {
                if (y == cached) {
                    // The chunk is used up: fetch the next one, while the warp's other threads wait.
                    const int more = min(chunk, y_length - y);
                    for (int k = 0; k < more; k++) own[k * stride] = __ldg(y_tables.keys_of(column, s) + y + k);
                    cached = y + more;
                    here = 0;
                }
                const Key y_key = own[here * stride], x_key = fixed[x];
                if (x_key == y_key)
                    sum += (Sum)__ldg(x_tables.counts_of(first_row + row, s) + x) *
                           (Sum)__ldg(y_tables.counts_of(column, s) + y);
                const int moves = y_key <= x_key;
                x += x_key <= y_key;
                y += moves;
                here += moves;
            }
        }
        if (wanted) out[((i64)m * rows + row) * columns + column] = sum;
    }
}
