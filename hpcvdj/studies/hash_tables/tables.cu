// The thesis's comparison kernels (section 3.c).
//
// compare_buckets is three of them, which differ in who compares a pair of buckets: the block (Sequential Bucket), a
// warp (Warp to Bucket) or a thread (Thread to Bucket).  The k-mers and counters of a sub-table are read into shared
// memory, offsets through the read-only cache.  A block has ROWS x COLUMNS pairs of sequences; 1 x 1 is the thesis's.
// With more, what was read serves several pairs.  With KEPT > 0, which is for Thread to Bucket, a thread takes KEPT
// k-mers of its bucket of each row into registers and compares each k-mer of a column with all of them: no bucket is
// so long that moving along two sorted ones, with a read from shared memory for each move, would be worth it.
//
// Tables larger than shared memory are compared in stages: a part of each row with a part of each column, in all
// combinations in which some bucket of the one can have a k-mer of the other.
//
// compare_pairs is Thread to Pair: the block's row lies in shared memory, each thread has one column and a few k-mers
// of it, in buckets merged to one.

#include "motif_tables.cuh"

#define BLOCK 0   // TEAM: threads that share a bucket; 0 for all of the block
#define EVERY -1  // KEPT: compare every k-mer of two buckets
#define LINEAR 0  // KEPT: merge them

// A part of the tile's sub-tables in shared memory: rows first, then columns; k-mers first, then counters.
template <typename Key, typename Row, typename Column, int ROWS, int COLUMNS>
struct Stage {
    Key *row_keys, *column_keys;
    Row *row_counts;
    Column *column_counts;

    __device__ __forceinline__ Stage(u8 *shared, int row_capacity, int column_capacity)
    {
        row_keys = (Key *)shared;
        column_keys = row_keys + ROWS * row_capacity;
        row_counts = (Row *)(column_keys + COLUMNS * column_capacity);
        column_counts = (Column *)(row_counts + ROWS * row_capacity);
    }
};

// Whether a k-mer of the row's part of bucket b, x to x_end, can be in the column's.
template <typename Key>
__device__ __forceinline__ bool can_meet(const Key *row, int x, int x_end, const Key *column, int y, int y_end)
{
    return x < x_end && y < y_end && __ldg(row + x) <= __ldg(column + y_end - 1) &&
           __ldg(column + y) <= __ldg(row + x_end - 1);
}

// CACHED: counters are in shared memory too; else they are read where k-mers agree.  THREADS, RESIDENT: of a block, and
// blocks that a multiprocessor is to have room for.
template <typename Key, typename Row, typename Column, typename Sum, int TEAM, int KEPT, bool CACHED, int ROWS,
          int COLUMNS, int THREADS, int RESIDENT>
__global__ void __launch_bounds__(THREADS, RESIDENT) compare_buckets(
    const Key *__restrict__ row_keys, const Row *__restrict__ row_counts, const Row *__restrict__ row_offsets,
    i64 first_row, int rows, int row_places, int row_capacity,
    const Key *__restrict__ column_keys, const Column *__restrict__ column_counts,
    const Column *__restrict__ column_offsets, i64 first_column, int columns, int column_places, int column_capacity,
    const int *__restrict__ ends,   // [distances] sub-tables of meta-tables 0 ... m
    int distances, int buckets,
    i64 diagonal,                   // columns from diagonal + row on are compared
    Sum *__restrict__ out)          // [distances, rows, columns]
{
    extern __shared__ __align__(16) u8 shared[];
    __shared__ Sum partial[THREADS / 32 * ROWS * COLUMNS];
    int row_tile, column_tile;
    tile_of_block((rows + ROWS - 1) / ROWS, (columns + COLUMNS - 1) / COLUMNS, &row_tile, &column_tile);
    const int row = row_tile * ROWS, column = column_tile * COLUMNS;
    if (column + COLUMNS - 1 < diagonal + row) return;

    const int subtables = ends[distances - 1];
    const Tables<Key, Row> mine = {row_keys, row_counts, row_offsets, first_row, rows, row_places, row_capacity,
                                   subtables, buckets};
    const Tables<Key, Column> theirs = {column_keys, column_counts, column_offsets, first_column, columns,
                                        column_places, column_capacity, subtables, buckets};
    const Stage<Key, Row, Column, ROWS, COLUMNS> stage(shared, row_capacity, column_capacity);
    const int size = TEAM == BLOCK ? blockDim.x : TEAM;
    const int team = threadIdx.x / size, member = threadIdx.x % size, teams = blockDim.x / size;

    int s = 0;
    for (int m = 0; m < distances; m++) {
        Sum sums[ROWS][COLUMNS] = {};
        for (; s < ends[m]; s++) {
            const Row *bounds = mine.offsets_of(row, s);
            const Column *their_bounds = theirs.offsets_of(column, s);
            int longest_row = 0, longest_column = 0;
            #pragma unroll
            for (int r = 0; r < ROWS; r++)
                if (row + r < rows) longest_row = max(longest_row, mine.at(bounds, r, buckets));
            #pragma unroll
            for (int c = 0; c < COLUMNS; c++)
                if (column + c < columns) longest_column = max(longest_column, theirs.at(their_bounds, c, buckets));
            const bool staged = longest_row > row_capacity || longest_column > column_capacity;
            for (int x0 = 0; x0 < longest_row; x0 += row_capacity)
                for (int y0 = 0; y0 < longest_column; y0 += column_capacity) {
                    if (staged) {
                        bool some = false;
                        for (int b = threadIdx.x; b < buckets; b += blockDim.x)
                            for (int r = 0; r < ROWS && row + r < rows; r++)
                                for (int c = 0; c < COLUMNS && column + c < columns; c++)
                                    some = some || can_meet(
                                        row_keys + mine.table(row + r, s) * row_places,
                                        max(mine.offset(row + r, s, b), x0),
                                        min(mine.offset(row + r, s, b + 1), x0 + row_capacity),
                                        column_keys + theirs.table(column + c, s) * column_places,
                                        max(theirs.offset(column + c, s, b), y0),
                                        min(theirs.offset(column + c, s, b + 1), y0 + column_capacity));
                        if (!__syncthreads_or(some)) continue;
                    }
                    __syncthreads();  // nobody still reads what was there
                    for (int r = 0; r < ROWS && row + r < rows; r++) {
                        const i64 from = mine.table(row + r, s) * row_places + x0;
                        const int some = min(mine.at(bounds, r, buckets) - x0, row_capacity);
                        copy_to_shared(stage.row_keys + r * row_capacity, row_keys + from, some);
                        if (CACHED) copy_to_shared(stage.row_counts + r * row_capacity, row_counts + from, some);
                    }
                    for (int c = 0; c < COLUMNS && column + c < columns; c++) {
                        const i64 from = theirs.table(column + c, s) * column_places + y0;
                        const int some = min(theirs.at(their_bounds, c, buckets) - y0, column_capacity);
                        copy_to_shared(stage.column_keys + c * column_capacity, column_keys + from, some);
                        if (CACHED)
                            copy_to_shared(stage.column_counts + c * column_capacity, column_counts + from, some);
                    }
                    __syncthreads();
                    const Row *own_counts =
                        CACHED ? stage.row_counts : row_counts + mine.table(row, s) * row_places + x0;
                    const int own_step = CACHED ? row_capacity : subtables * row_places;
                    for (int b = team; b < buckets; b += teams) {
                        int x[ROWS], x_end[ROWS], y[COLUMNS], y_end[COLUMNS], most = 0;
                        #pragma unroll
                        for (int r = 0; r < ROWS; r++) {
                            x[r] = x_end[r] = 0;
                            if (row + r >= rows) continue;
                            x[r] = max(mine.at(bounds, r, b) - x0, 0);
                            x_end[r] = min(mine.at(bounds, r, b + 1) - x0, row_capacity);
                            if (TEAM != 1) {
                                // A run of the row's k-mers to each member of the team.
                                const int each = (max(x_end[r] - x[r], 0) + size - 1) / size;
                                x[r] += member * each;
                                x_end[r] = min(x_end[r], x[r] + each);
                            }
                            most = max(most, x_end[r] - x[r]);
                        }
                        #pragma unroll
                        for (int c = 0; c < COLUMNS; c++) {
                            y[c] = y_end[c] = 0;
                            if (column + c >= columns) continue;
                            y[c] = max(theirs.at(their_bounds, c, b) - y0, 0);
                            y_end[c] = min(theirs.at(their_bounds, c, b + 1) - y0, column_capacity);
                        }
                        for (int from = 0; from < most; from += KEPT > 0 ? KEPT : most) {
                            Key kept[ROWS][KEPT > 0 ? KEPT : 1];
                            if constexpr (KEPT > 0) keep(kept, stage.row_keys, row_capacity, x, x_end, from);
                            #pragma unroll
                            for (int c = 0; c < COLUMNS; c++) {
                                const Key *keys = stage.column_keys + c * column_capacity;
                                const Column *counts =
                                    CACHED ? stage.column_counts + c * column_capacity
                                           : column_counts + theirs.table(column + c, s) * column_places + y0;
                                if constexpr (KEPT > 0) {
                                    for (int k = y[c]; k < y_end[c]; k++)
                                        match_kept(
                                            kept, keys[k], counts + k, own_counts, own_step, x, x_end, from, sums, c);
                                } else {
                                    #pragma unroll
                                    for (int r = 0; r < ROWS; r++) {
                                        const Key *own = stage.row_keys + r * row_capacity;
                                        const Row *f = own_counts + (i64)r * own_step;
                                        const int p = x[r], end = x_end[r];
                                        sums[r][c] += KEPT == LINEAR
                                            ? merge_runs<Sum>(own, f, p, end, keys, counts, y[c], y_end[c])
                                            : compare_all<Sum>(own, f, p, end, keys, counts, y[c], y_end[c]);
                                    }
                                }
                            }
                        }
                    }
                }
        }
        #pragma unroll
        for (int p = 0; p < ROWS * COLUMNS; p++) {
            const Sum total = sum_of_warp(sums[p / COLUMNS][p % COLUMNS]);
            if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32 * (ROWS * COLUMNS) + p] = total;
        }
        __syncthreads();
        for (int p = threadIdx.x; p < ROWS * COLUMNS; p += blockDim.x) {
            const int r = row + p / COLUMNS, c = column + p % COLUMNS;
            if (r >= rows || c >= columns || c < diagonal + r) continue;
            Sum total = 0;
            for (int warp = 0; warp < (int)blockDim.x / 32; warp++) total += partial[warp * (ROWS * COLUMNS) + p];
            out[((i64)m * rows + r) * columns + c] = total;
        }
        __syncthreads();  // before the next distance's sums overwrite these
    }
}

template <typename Key, typename Row, typename Column, typename Sum>
__global__ void __launch_bounds__(1024) compare_pairs(
    const Key *__restrict__ row_keys, const Row *__restrict__ row_counts, const Row *__restrict__ row_offsets,
    i64 first_row, int rows, int row_places, int row_capacity,
    const Key *__restrict__ column_keys, const Column *__restrict__ column_counts,
    const Column *__restrict__ column_offsets, i64 first_column, int columns, int column_places,
    int chunk,                      // k-mers of its column that a thread has in shared memory
    const int *__restrict__ ends, int distances,
    i64 diagonal,
    Sum *__restrict__ out)
{
    extern __shared__ __align__(16) u8 shared[];
    Key *fixed = (Key *)shared;                                // [row_capacity]
    Key *own = fixed + row_capacity + threadIdx.x;             // [chunk, threads]
    const int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x, stride = blockDim.x;
    const int last = min((int)(blockIdx.x * blockDim.x + blockDim.x), columns) - 1;
    if (last < diagonal + row) return;
    const bool wanted = column < columns && column >= diagonal + row;
    const int subtables = ends[distances - 1];

    int s = 0;
    for (int m = 0; m < distances; m++) {
        Sum found = 0;
        for (; s < ends[m]; s++) {
            const i64 mine = (first_row + row) * subtables + s;
            const i64 theirs = (first_column + column) * subtables + s;
            // One bucket: the offsets are 0 and the length.
            const int length = (int)__ldg(row_offsets + 2 * mine + 1);
            const int y_length = wanted ? (int)__ldg(column_offsets + 2 * theirs + 1) : 0;
            const Key *keys = column_keys + theirs * column_places;
            int y = 0, cached = 0, here = 0;

            for (int x0 = 0; x0 < length; x0 += row_capacity) {
                const int part = min(length - x0, row_capacity);
                __syncthreads();
                copy_to_shared(fixed, row_keys + mine * row_places + x0, part);
                __syncthreads();
                int x = 0;
                while (x < part && y < y_length) {
                    if (y == cached) {
                        // The chunk is used up: the next one, while the warp's other threads wait.
                        const int more = min(chunk, y_length - y);
                        for (int k = 0; k < more; k++) own[k * stride] = __ldg(keys + y + k);
                        cached = y + more;
                        here = 0;
                    }
                    const Key head = own[here * stride];
                    const Key fixed_head = fixed[x];
                    if (fixed_head == head)
                        found += (Sum)__ldg(row_counts + mine * row_places + x0 + x) *
                                 (Sum)__ldg(column_counts + theirs * column_places + y);
                    const int moves = head <= fixed_head;
                    x += fixed_head <= head;
                    y += moves;
                    here += moves;
                }
            }
        }
        if (wanted) out[((i64)m * rows + row) * columns + column] = found;
    }
}
