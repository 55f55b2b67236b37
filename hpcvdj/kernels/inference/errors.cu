// Expected counts of the events of recombination if bases may be misread: a warp has one junction.
//
// errors_cpu.py says how.  Every form fits everywhere, so the lanes of a warp are places of the junction: those where a
// V or J form ends, or a D form begins.  A warp goes through the D genes twice: for the probability of the junction,
// then for the counts, which are divided by it.  What is counted for a D gene is rounded for this gene, not for the
// whole junction as on CPU cores.  Every sum has the same order for any number of blocks and ranks.
//
// Both sides of a junction are numbered from their own ends.  A V form has `kept` bases and ends there; insertions that
// follow it end `t` bases later.  Lanes that add to places in turn meet at a barrier of the warp after each turn;
// shuffles order no memory, so there is a barrier, too, before room is used again.
//
// The host defines PAIRS of bases and MOST_THREADS of a block, and structs, which pgen/tables.py, errors_layout.py and
// errors_cuda.py describe; Counted says where the counts of each kind begin.

#include "counting.cuh"

// A side of a junction: what is the same in all turns.
struct Side {
    const u8 *codes;   // of the bases, from the end of this side, in shared memory
    const u64 *words;  // the same, packed, in shared memory
    int length, depth;
    Chain chain;
    Values<int> alleles;  // the set of the junction
    int size;             // of the set
    PackedTexts texts;
    Table<double> deletions;
    double *ends, *out;   // [length + 1]: weights of all forms that end there, and of what ends with insertions
};

// The bases of an allele that a junction does not have.
template <int W>
struct Misread {
    u64 bits[W];  // one in each pair of bits

    __device__ __forceinline__ Misread(const Side &side, int allele)
    {
        #pragma unroll
        for (int w = 0; w < W; w++) {
            const u64 differ = side.words[w] ^ side.texts.words[(i64)allele * side.texts.words.width + w];
            bits[w] = (differ | differ >> 1) & 0x5555555555555555ull;
        }
    }

    __device__ __forceinline__ int before(int kept) const
    {
        int number = 0;
        #pragma unroll
        for (int w = 0; w < W; w++)
            number += __popcll(bits[w] & first_bases(min(max(kept - w * BASES_PER_WORD, 0), BASES_PER_WORD)));
        return number;
    }
};

// The form of `kept` bases of an allele: its weight without that of the allele's choice, and its misread bases.
struct Form {
    double weight = 0;
    int misread = 0, deletion = 0;

    template <int W>
    __device__ __forceinline__ Form(
        const Side &side, const Misread<W> &differs, const Powers &powers, int allele, int kept)
    {
        deletion = side.texts.lengths[allele] - kept;
        if (kept > side.depth || deletion < 0 || deletion >= side.deletions.width) return;
        misread = differs.before(kept);
        weight = powers.hit[kept - misread] * powers.miss[misread] * side.deletions.row(allele)[deletion];
    }
};

// The place of a lane in each word of a junction, from 1.
__device__ __forceinline__ int place_of(int word) { return word * LANES + threadIdx.x % LANES + 1; }

// The probability of the bases of an insertion of `t` bases after `kept`, from that of one base less.
__device__ __forceinline__ double inserted(const Side &side, int kept, int t, double before)
{
    if (t == 0) return 1;
    const int base = side.codes[kept + t - 1];
    return before * (t == 1 ? side.chain.first[base] : side.chain.step[4 * side.codes[kept + t - 2] + base]);
}

// Fill `ends` and `out` of a side from the probabilities of alleles; whether any allele of the set has one.
template <int W>
__device__ __noinline__ bool forward(const Side &side, Values<double> choice, const Powers &powers)
{
    const int lane = threadIdx.x % LANES;
    double own[W] = {};
    bool any = false;
    for (int k = 0; k < side.size; k++) {
        const int allele = side.alleles[k];
        const double weight = choice[allele];
        if (!(weight > 0)) continue;
        any = true;
        const Misread<W> differs(side, allele);
        #pragma unroll
        for (int w = 0; w < W; w++) own[w] += weight * Form(side, differs, powers, allele, place_of(w)).weight;
    }
    if (!any) return false;
    __syncwarp(ALL);  // others may still read what the gene before made
    for (int q = lane; q <= side.length; q += LANES) side.ends[q] = side.out[q] = 0;
    __syncwarp(ALL);
    #pragma unroll
    for (int w = 0; w < W; w++) {
        const int kept = place_of(w);
        if (w * LANES + 1 > side.depth) break;
        if (kept <= side.depth) side.ends[kept] = own[w];
        const int lags = min(side.chain.lags, side.length - w * LANES);
        double chance = 0;
        for (int t = 0; t < lags; t++) {
            if (kept <= side.depth && kept + t <= side.length) {
                chance = inserted(side, kept, t, chance);
                side.out[kept + t] += own[w] * chance * side.chain.lengths[t];
            }
            __syncwarp(ALL);
        }
    }
    return true;
}

// Where a side's counts go: of insertions among the block's, the others among all.
struct SidePlaces {
    InsertionPlaces insertions;
    u64 *choice, *deletions;
};

// Count what a side does.  Returns this lane's part of the expected number of misread bases.
//
// bar     bar(q): the derivative of the probability by out[q]
// over    one over the probability of the junction
// starts  [length + 1]: room; there is a barrier after it is cleared, before `bar` is called
template <int W, typename Bar>
__device__ __noinline__ double back(
    const Side &side, Values<double> choice, const Powers &powers, const Bar &bar, double over, const Scale &scale,
    const Counts &counts, const SidePlaces &at, double *starts)
{
    const int lane = threadIdx.x % LANES;
    double derivative[W] = {}, begins[W] = {};
    __syncwarp(ALL);  // others may still read what the other side left
    for (int q = lane; q <= side.length; q += LANES) starts[q] = 0;
    __syncwarp(ALL);
    #pragma unroll
    for (int w = 0; w < W; w++) {
        const int kept = place_of(w);
        if (w * LANES + 1 > side.depth) break;
        const double weight = kept <= side.depth ? side.ends[kept] * over : 0;
        const int lags = min(side.chain.lags, side.length - w * LANES);
        double chance = 0;
        for (int t = 0; t < lags; t++) {
            double z = 0;
            if (kept <= side.depth && kept + t <= side.length) {
                chance = inserted(side, kept, t, chance);
                const double part = chance * side.chain.lengths[t] * bar(kept + t);
                derivative[w] += part;
                z = weight * part;
                if (t > 0) begins[w] += z;
            }
            z = warp_sum(z);
            if (lane == 0) counts.add(at.insertions.lengths + t, scale(z));
        }
        if (kept <= side.depth) starts[kept] = begins[w];
    }
    #pragma unroll
    for (int base = 0; base < 4; base++) {
        double sum = 0;
        #pragma unroll
        for (int w = 0; w < W; w++) {
            const int kept = place_of(w);
            if (kept < side.length && side.codes[kept] == base) sum += begins[w];
        }
        sum = warp_sum(sum);
        if (lane == 0) counts.add(at.insertions.first + base, scale(sum));
    }
    // Of the insertions that have begun before base k, those go on after it that have not ended at k or before.
    double covering = 0;
    __syncwarp(ALL);
    for (int first = 1; first < side.length; first += LANES) {
        const int k = first + lane;
        double change = 0;
        if (k < side.length)
            change = starts[k - 1] - over * bar(k) * (side.out[k] - side.ends[k] * side.chain.lengths[0]);
        #pragma unroll
        for (int apart = 1; apart < LANES; apart *= 2) {
            const double before = __shfl_sync(ALL, change, max(lane - apart, 0));
            if (lane >= apart) change += before;
        }
        change += covering;
        covering = __shfl_sync(ALL, change, LANES - 1);
        if (k < side.length)
            counts.add(at.insertions.steps + 4 * side.codes[k - 1] + side.codes[k], scale(max(change, 0.0)));
    }
    double misread = 0;
    for (int k = 0; k < side.size; k++) {
        const int allele = side.alleles[k];
        const double weight = choice[allele];
        if (!(weight > 0)) continue;
        const Misread<W> differs(side, allele);
        double chosen = 0;
        #pragma unroll
        for (int w = 0; w < W; w++) {
            const Form form(side, differs, powers, allele, place_of(w));
            const double z = weight * form.weight * derivative[w] * over;
            if (!(z > 0)) continue;
            chosen += z;
            misread += z * form.misread;
            const u64 value = scale(z);
            if (value) atomicAdd(at.deletions + (i64)allele * side.deletions.width + form.deletion, value);
        }
        chosen = warp_sum(chosen);
        if (lane == 0) atomicAdd(at.choice + allele, scale(chosen));
    }
    return misread;
}

// The forms of a D gene at all places of a junction.
struct Middle {
    const u8 *codes;
    int length;
    Values<u8> text;
    int size, lefts, columns;
    Values<double> deletions;  // [lefts, columns]
    const double *left;        // [length]: the weight of what ends before each base
    double hit, miss;

    // Call `work(stop, word, weight, misread)` for each form at each place of this lane: where it stops, the word of the
    // place, the weight with what comes before it, and its misread bases.  After each form, call `end(deletions)`.
    template <int W, typename Work, typename End>
    __device__ __forceinline__ void walk(const Work &work, const End &end) const
    {
        for (int lost = 0; lost < min(size + 1, lefts); lost++) {
            double value[W];
            int misread[W];
            #pragma unroll
            for (int w = 0; w < W; w++) {
                value[w] = place_of(w) < length ? left[place_of(w)] : 0;
                misread[w] = 0;
            }
            const int most = min(size - lost, length - 2);
            for (int kept = 0; kept <= most; kept++) {
                if (kept > 0) {
                    const int base = text[lost + kept - 1];
                    #pragma unroll
                    for (int w = 0; w < W; w++) {
                        const int q = place_of(w) + kept - 1;
                        const bool same = q < length && codes[q] == base;
                        value[w] *= same ? hit : miss;
                        misread[w] += !same;
                    }
                }
                const int rest = size - lost - kept;
                const double chance = rest < columns ? deletions[lost * columns + rest] : 0;
                if (chance == 0) continue;
                #pragma unroll
                for (int w = 0; w < W; w++) {
                    const int stop = place_of(w) + kept;
                    if (stop < length) work(stop, w, value[w] * chance, misread[w]);
                }
                end(lost * columns + rest);
            }
        }
    }
};

template <int W>
__global__ void __launch_bounds__(MOST_THREADS) expectation_with_errors(
    const u64 *__restrict__ words,        // [junctions, words_apart]
    int words_apart,
    const u8 *__restrict__ lengths,       // [junctions]
    const u32 *__restrict__ row_weights,  // [junctions]
    const i64 *__restrict__ offsets,      // [pairs + 1]
    int pairs,
    i64 first, i64 junctions,             // the first row, as offsets count, and the number of rows
    const Masks v_masks, const Masks j_masks, const PackedTexts v_texts, const PackedTexts j_texts, const Texts d_texts,
    const Weights weights, const Powers powers, const Insertion vd_there, const Insertion dj_there,
    int columns,                          // deletions of D from the right
    const Counted at, const Shared parts,
    double unit, double log_unit, double least,
    u64 *__restrict__ out)                // the counts
{
    constexpr int MOST = W * BASES_PER_WORD, WIDE = MOST + 2;
    extern __shared__ __align__(16) u8 shared[];
    const int lane = threadIdx.x % LANES, warp = threadIdx.x / LANES, warps = blockDim.x / LANES;

    const Chain vd = copied(vd_there, shared + parts.vd, 0), dj = copied(dj_there, shared + parts.dj, 0);
    const Counts counts = {(u32 *)(shared + parts.counts)};  // of insertions, misread bases and junctions
    const int counted = at.lost + 2 - at.vd_lengths;
    for (int k = threadIdx.x; k < 2 * counted; k += blockDim.x) counts.halves[k] = 0;
    __syncthreads();

    double *const room = (double *)(shared + parts.room) + (i64)warp * ROOMS * WIDE;
    double *const right_bar = room + 4 * WIDE, *const left_bar = room + 5 * WIDE, *const starts = room + 6 * WIDE;
    u64 *const packed = (u64 *)(shared + parts.packed) + warp * 2 * W;
    u8 *const codes = shared + parts.codes + warp * 2 * MOST, *const codes_back = codes + MOST;
    const InsertionPlaces vd_places = {0, at.vd_first - at.vd_lengths, at.vd_steps - at.vd_lengths};
    const InsertionPlaces dj_places = {
        at.dj_lengths - at.vd_lengths, at.dj_first - at.vd_lengths, at.dj_steps - at.vd_lengths};
    const int genes = weights.j_choice.rows, rows_of_v = weights.v_choice.rows;
    const auto middle_of = [&](int gene, const Side &v) {
        return Middle{
            v.codes, v.length, d_texts.codes.row(gene), d_texts.lengths[gene], weights.d.width / columns, columns,
            weights.d.row(gene), v.out, powers.hit[1], powers.miss[1]};
    };

    for (i64 row = (i64)blockIdx.x * warps + warp; row < junctions; row += (i64)gridDim.x * warps) {
        const int length = lengths[row];
        // The last pair that does not begin after the row.
        int pair = 0;
        for (int above = pairs; above - pair > 1;) {
            const int middle = (pair + above) / 2;
            (offsets[middle] <= first + row ? pair : above) = middle;
        }
        __syncwarp(ALL);
        for (int k = lane; k < length; k += LANES) {
            const u64 word = words[row * words_apart + k / BASES_PER_WORD];
            const u8 base = (u8)(word >> (2 * (BASES_PER_WORD - 1 - k % BASES_PER_WORD)) & 3);
            codes[k] = codes_back[length - 1 - k] = base;
        }
        __syncwarp(ALL);
        if (lane < 2 * W) {
            const u8 *const from = lane < W ? codes : codes_back;
            u64 word = 0;
            for (int k = lane % W * BASES_PER_WORD; k < (lane % W + 1) * BASES_PER_WORD; k++)
                word = word << 2 | (k < length ? from[k] : 0);
            packed[lane] = word;
        }
        __syncwarp(ALL);
        const auto side_of = [&](const u8 *bases, const u64 *own, const Chain &chain, const Masks &masks,
                                 const PackedTexts &texts, const Table<double> &deletions, double *space) {
            const int begin = masks.first[pair];
            return Side{bases, own, length, min(texts.longest, length), chain, masks.places + begin,
                        masks.first[pair + 1] - begin, texts, deletions, space, space + WIDE};
        };
        const Side v = side_of(codes, packed, vd, v_masks, v_texts, weights.v, room);
        const Side j = side_of(codes_back, packed + W, dj, j_masks, j_texts, weights.j, room + 2 * WIDE);

        const u32 times = row_weights[row];
        const Scale scale = {unit, times};
        double total = 0;
        bool left = false;  // whether the side of V is that of all genes, and filled
        for (int gene = 0; gene < genes; gene++) {
            if (!forward<W>(j, weights.j_choice.row(gene), powers)) continue;
            if (!left && !forward<W>(v, weights.v_choice.row(gene % rows_of_v), powers)) continue;
            left = rows_of_v == 1;
            double made = 0;
            middle_of(gene, v).template walk<W>(
                [&](int stop, int, double weight, int) { made += weight * j.out[length - stop]; }, [](int) {});
            total += warp_sum(made);
        }
        const int held = times == 0;
        if (lane == 0) {
            const u64 weight = held ? 1 : times;
            const i64 surprise = (i64)(-log(max(total, least)) * log_unit + 0.5);
            counts.add(at.logs - at.vd_lengths + held, (u64)surprise * weight);
            if (total < least) counts.add(at.lost - at.vd_lengths + held, weight);
        }
        if (held || total < least) continue;

        const double over = 1 / total;
        double misread = 0, begun[W] = {};  // of D forms that begin at each place
        const auto count_v = [&](int gene) {
            #pragma unroll
            for (int w = 0; w < W; w++) {
                const int q = place_of(w);
                if (q <= length) left_bar[q] = q < length && v.out[q] > 0 ? begun[w] / v.out[q] : 0;
                begun[w] = 0;
            }
            const SidePlaces there = {vd_places, out + at.v_choice + (i64)gene * weights.v_choice.width, out + at.v};
            misread += back<W>(
                v, weights.v_choice.row(gene), powers, [&](int q) { return left_bar[q]; }, over, scale, counts, there,
                starts);
        };
        for (int gene = 0; gene < genes; gene++) {
            const Values<double> choice = weights.j_choice.row(gene);
            if (!forward<W>(j, choice, powers)) continue;
            if (!left && !forward<W>(v, weights.v_choice.row(gene), powers)) continue;
            for (int q = lane; q <= length; q += LANES) right_bar[q] = 0;
            __syncwarp(ALL);
            double made = 0;
            u64 *const at_form = out + at.d + (i64)gene * weights.d.width;
            middle_of(gene, v).template walk<W>(
                [&](int stop, int w, double weight, int differ) {
                    const double own = weight * j.out[length - stop];
                    right_bar[stop] += weight;
                    begun[w] += own;
                    misread += own * over * differ;
                    made += own;
                },
                [&](int form) {
                    const u64 value = scale(warp_sum(made) * over);
                    if (lane == 0 && value) atomicAdd(at_form + form, value);
                    made = 0;
                    __syncwarp(ALL);
                });
            const SidePlaces there = {dj_places, out + at.j_choice + (i64)gene * weights.j_choice.width, out + at.j};
            misread += back<W>(
                j, choice, powers, [&](int q) { return right_bar[length - q]; }, over, scale, counts, there, starts);
            if (!left) count_v(gene);
        }
        if (left) count_v(0);
        misread = warp_sum(misread);
        if (lane == 0) counts.add(at.misread - at.vd_lengths, scale(misread));
    }
    __syncthreads();
    counts.flush(counted, out + at.vd_lengths);
}
