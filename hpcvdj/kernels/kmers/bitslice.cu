// Method `bitslice`: all shifts of two sequences against each other, 32 pairs of positions at a time.

typedef unsigned long long word;

// 64 bits of a plane from position p on; planes have zeros up to a word beyond their last position.
__device__ inline word bits_from(const word *plane, int words, int p)
{
    const int w = p / 64, rest = p % 64;
    const word low = w < words ? plane[w] : 0, high = w + 1 < words ? plane[w + 1] : 0;
    return rest ? low >> rest | high << (64 - rest) : low;
}

struct Sum {
    word low, high, over;
};

// a(p) + b(p + distance): two bits, and whether the sum is above 3.
__device__ inline Sum add(const Sum &a, const Sum &b, int distance)
{
    const word low = b.low >> distance, high = b.high >> distance, carry = a.low & low;
    return {a.low ^ low, a.high ^ high ^ carry,
            a.over | b.over >> distance | (a.high & high) | ((a.high ^ high) & carry)};
}

// A block takes a row and one column; planes are [sequences][3][words]: upper bits, lower bits, where a k-mer begins.
extern "C" __global__ void bitslice(const word *row_planes, const word *column_planes, int row_words, int column_words,
                                    int k, int first, int planes, int rows, int columns, unsigned *found)
{
    extern __shared__ word shared_planes[];
    const int r = blockIdx.y, c = blockIdx.x;
    if (first >= 0 && c < first + r)
        return;
    word *mine = shared_planes, *theirs = mine + 3 * row_words;
    unsigned *sums = (unsigned *)(theirs + 3 * column_words);
    for (int w = threadIdx.x; w < 3 * row_words; w += blockDim.x)
        mine[w] = row_planes[(long long)r * 3 * row_words + w];
    for (int w = threadIdx.x; w < 3 * column_words; w += blockDim.x)
        theirs[w] = column_planes[(long long)c * 3 * column_words + w];
    if (threadIdx.x < planes)
        sums[threadIdx.x] = 0;
    __syncthreads();
    unsigned local[4] = {0, 0, 0, 0};
    // A thread takes a shift: position p + shift of one sequence against p of the other.
    const int shifts = 64 * (row_words + column_words) - 1;
    for (int s = threadIdx.x; s < shifts; s += blockDim.x) {
        const bool down = s < 64 * row_words;
        const int shift = down ? s : s - 64 * row_words + 1;
        const word *moved = down ? mine : theirs, *fixed = down ? theirs : mine;
        const int moved_words = down ? row_words : column_words, fixed_words = down ? column_words : row_words;
        for (int p = 0; p < 64 * fixed_words && p + shift < 64 * moved_words; p += 32) {
            word pairs = bits_from(moved + 2 * moved_words, moved_words, p + shift);
            pairs &= bits_from(fixed + 2 * fixed_words, fixed_words, p) & 0xffffffffull;
            if (!pairs)
                continue;
            Sum power = {(bits_from(moved, moved_words, p + shift) ^ bits_from(fixed, fixed_words, p)) |
                             (bits_from(moved + moved_words, moved_words, p + shift) ^
                              bits_from(fixed + fixed_words, fixed_words, p)),
                         0, 0};
            Sum total = {0, 0, 0};
            for (int length = 1, covered = 0;; length *= 2) {
                if (k & length) {
                    total = add(total, power, covered);
                    covered += length;
                }
                if (covered == k)
                    break;
                power = add(power, power, length);
            }
            pairs &= ~total.over;
            local[0] += __popcll(pairs & ~total.low & ~total.high);
            local[1] += __popcll(pairs & total.low & ~total.high);
            local[2] += __popcll(pairs & ~total.low & total.high);
            local[3] += __popcll(pairs & total.low & total.high);
        }
    }
    for (int h = 0; h < planes; h++)
        if (local[h])
            atomicAdd(&sums[h], local[h]);
    __syncthreads();
    if (threadIdx.x < planes)
        found[((long long)threadIdx.x * rows + r) * columns + c] = sums[threadIdx.x];
}
