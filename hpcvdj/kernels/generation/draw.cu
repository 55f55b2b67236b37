// Drawing scenarios from a recombination model: what hpcvdj/kernels/generation/draw_cpu.py does, a thread to a sequence.
//
// The host defines EVENTS, BASE_BLOCK, FIRST_BASE and PAIR, and the struct DrawTables, which tables.py describes.
// WIDTH is the number of words of a packed junction.

#include "../sequence.cuh"

// Philox4x32-10 (Salmon et al. 2011): random numbers that are a function of a counter and a key.
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

// The outcome of a distribution for the random number 2^32 high + low.
__device__ __forceinline__ u32 pick(u32 high, u32 low, int distribution, const DrawTables &tables)
{
    const i64 begin = tables.first[distribution];
    const u64 size = tables.first[distribution + 1] - begin;
    const u64 below = low * size, product = high * size + (below >> 32);
    const Values<u64> slot = tables.slots.row(begin + (i64)(product >> 32));
    const u64 remainder = product << 32 | (below & 0xffffffffull);
    return (u32)(remainder < slot[0] ? slot[1] : slot[1] >> 32);
}

__device__ __forceinline__ void put(u64 *packed, int place, u64 code)
{
    packed[place / BASES_PER_WORD] |= code << (62 - 2 * (place % BASES_PER_WORD));
}

// Bases `begin` … `end`-1 of the segments' text from `place` on.
__device__ __forceinline__ void copy(u64 *packed, int place, const Values<u8> &text, i64 begin, i64 end)
{
    for (i64 k = begin; k < end; k++) put(packed, place++, text[k]);
}

template <int WIDTH>
__global__ void draw(
    u64 begin,                            // the first sequence
    u64 seed,
    const DrawTables tables,
    i64 rows,
    u64 *__restrict__ words,              // [rows, WIDTH]
    u16 *__restrict__ lengths,            // [rows]
    short *__restrict__ events)           // [rows, EVENTS]
{
    const int lengths_of = tables.first.rows - 3;  // the distribution of the first insertion's length
    const u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    for (i64 row = threadIdx.x + (i64)blockIdx.x * blockDim.x; row < rows; row += (i64)gridDim.x * blockDim.x) {
        const u64 index = begin + row;
        const u32 i0 = (u32)index, i1 = (u32)(index >> 32);
        Numbers number = philox(i0, i1, 0, 0, k0, k1);
        const Values<int> choice = tables.choices.row(pick(number.x[0], number.x[1], 0, tables));
        const int v = choice[0], d = choice[1], j = choice[2];
        const int d_text = tables.v + d, j_text = tables.v + tables.d + j;
        const int v_deleted = pick(number.x[2], number.x[3], 1 + v, tables);
        number = philox(i0, i1, 1, 0, k0, k1);
        const int d_deleted = pick(number.x[0], number.x[1], 1 + d_text, tables);
        const int j_deleted = pick(number.x[2], number.x[3], 1 + j_text, tables);
        number = philox(i0, i1, 2, 0, k0, k1);
        const int n1 = pick(number.x[0], number.x[1], lengths_of, tables);
        const int n2 = pick(number.x[2], number.x[3], lengths_of + 1, tables);
        const int left = d_deleted / PAIR, right = d_deleted % PAIR;

        const i64 d_begin = tables.text_first[d_text] + left, d_end = tables.text_first[d_text + 1] - right;
        const int v_size = tables.text_first[v + 1] - tables.text_first[v] - v_deleted, d_size = (int)(d_end - d_begin);
        const int end = v_size + n1 + d_size + n2;
        const i64 j_begin = tables.text_first[j_text] + j_deleted, j_end = tables.text_first[j_text + 1];
        u64 packed[WIDTH] = {};
        copy(packed, 0, tables.text, tables.text_first[v], tables.text_first[v] + v_size);
        int last = FIRST_BASE;
        for (int k = 0; k < n1 + n2; k++) {
            if (k % 4 == 0) number = philox(i0, i1, BASE_BLOCK + k / 4, 0, k0, k1);
            if (k == n1) last = FIRST_BASE;
            const Values<u64> below = tables.bases.row(k >= n1) + 3 * last;
            const u32 x = k % 4 == 0 ? number.x[0] : k % 4 == 1 ? number.x[1] : k % 4 == 2 ? number.x[2] : number.x[3];
            last = (x >= below[0]) + (x >= below[1]) + (x >= below[2]);
            // The second insertion is read from J leftwards.
            put(packed, k < n1 ? v_size + k : end - 1 - (k - n1), last);
        }
        copy(packed, v_size + n1, tables.text, d_begin, d_end);
        copy(packed, end, tables.text, j_begin, j_end);

        for (int place = 0; place < WIDTH; place++) words[row * WIDTH + place] = packed[place];
        lengths[row] = end + (int)(j_end - j_begin);
        const int own[EVENTS] = {v, d, j, v_deleted, left, right, j_deleted, n1, n2};
        for (int k = 0; k < EVENTS; k++) events[row * EVENTS + k] = (short)own[k];
    }
}
