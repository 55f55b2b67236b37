// CUDA C++ for a host compiler: what hpcvdj's kernels use of it.  The threads of a block are fibers that run one after
// another from barrier to barrier, forward, backward or shuffled, so that a missing barrier changes the result.
// Threads of a warp wait for those of the same mask at shuffles and ballots, and run as far ahead of each other as barriers let them.
// Between two barriers a thread is never interrupted: an atomic that is missing does not show.
// Blocks run one after another; dynamic shared memory is filled with rubbish before each, and guarded at its end.
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

using std::max;
using std::min;

#define __global__
#define __device__
#define __constant__
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

constexpr int GUARD = 64;
alignas(16) static unsigned char shared_memory[SHARED_BYTES + GUARD];

struct Index {
    unsigned x = 0, y = 0, z = 0;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
inline int __clzll(unsigned long long word) { return word ? __builtin_clzll(word) : 64; }
struct alignas(16) double2 {
    double x, y;
};

inline unsigned long long __brevll(unsigned long long word)
{
    unsigned long long turned = 0;
    for (int bit = 0; bit < 64; bit++) turned |= (word >> bit & 1) << (63 - bit);
    return turned;
}
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __ffsll(unsigned long long word) { return __builtin_ffsll((long long)word); }

template <typename T, typename U>
T atomicAdd(T *place, U value)
{
    T before = *place;
    *place = before + (T)value;
    return before;
}

template <typename T>
T atomicCAS(T *place, T expected, T value)
{
    T before = *place;
    if (before == expected) *place = value;
    return before;
}

constexpr int WARP = 32;
constexpr unsigned WHOLE_WARP = 0xffffffffu;

enum State { READY, AT_WARP, AT_BLOCK, OVER };

struct Fiber {
    ucontext_t context;
    jmp_buf place;
    std::vector<char> stack = std::vector<char>(1 << 16);
    State state = OVER;
    bool begun = false;
    int turn = 0;
    unsigned mask = 0;
};

// Fibers begin as contexts and go on by jumps, which need no system call.
static jmp_buf scheduler;
static Fiber *running;
static const char *failure;
static void (*body)(void **);
static void **body_arguments;

__attribute__((noinline)) static void leave(State state)
{
    running->state = state;
    if (!_setjmp(running->place)) _longjmp(scheduler, 1);
}

static void run_fiber()
{
    body(body_arguments);
    leave(OVER);
}

__attribute__((noinline)) static void enter(Fiber &fiber)
{
    running = &fiber;
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.place, 1);
    fiber.begun = true;
    setcontext(&fiber.context);
}

inline void __syncthreads() { leave(AT_BLOCK); }

template <typename T>
inline T __ldg(const T *place)
{
    return *place;
}

// What each thread hands to the others of its warp.  Two turns: a thread that is one collective ahead of the others
// leaves what they have not taken yet.
static unsigned long long handed[2][1024];

template <typename T>
inline const unsigned long long *hand_round(unsigned mask, T value)
{
    if (!(mask >> threadIdx.x % WARP & 1)) failure = "a collective that is not for the thread itself";
    // Turns are those of the threads of one mask.
    if (running->mask && running->mask != mask) failure = "a thread's collectives are for different threads";
    running->mask = mask;
    const int turn = running->turn;
    running->turn = !turn;
    memcpy(&handed[turn][threadIdx.x], &value, sizeof value);
    leave(AT_WARP);
    return &handed[turn][threadIdx.x / WARP * WARP];
}

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = WARP)
{
    const int from = threadIdx.x % WARP / width * width + lane % width;
    if (!(mask >> from & 1)) failure = "a shuffle from a thread that is not in it";
    T taken;
    memcpy(&taken, hand_round(mask, value) + from, sizeof taken);
    return taken;
}

template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int apart)
{
    return __shfl_sync(mask, value, threadIdx.x % WARP ^ apart);
}

inline void __syncwarp(unsigned mask) { hand_round(mask, 0ull); }

inline unsigned __ballot_sync(unsigned mask, int value)
{
    const unsigned long long *all = hand_round(mask, (unsigned long long)(value != 0));
    unsigned votes = 0;
    for (int lane = 0; lane < WARP; lane++) votes |= (mask >> lane & (unsigned)all[lane]) << lane;
    return votes;
}

inline int __syncthreads_or(int value)
{
    static int votes[1024];
    votes[threadIdx.x] = value;
    __syncthreads();
    int any = 0;
    for (unsigned k = 0; k < blockDim.x; k++) any |= votes[k] != 0;
    __syncthreads();
    return any;
}

enum Order { FORWARD, BACKWARD, SHUFFLED };

// Whether the threads of a thread's collective had all come to it, and may go on.
static bool release_warp(std::vector<Fiber> &fibers, size_t place)
{
    const size_t first = place / WARP * WARP;
    const unsigned mask = fibers[place].mask;
    for (size_t lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1)) continue;
        if (first + lane >= fibers.size()) return false;
        const Fiber &fiber = fibers[first + lane];
        if (fiber.state != AT_WARP || fiber.mask != mask) return false;
    }
    for (size_t lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) fibers[first + lane].state = READY;
    return true;
}

static void run_thread(std::vector<Fiber> &fibers, int place)
{
    if (fibers[place].state != READY || failure) return;
    threadIdx.x = place;
    enter(fibers[place]);
}

static void run_block(std::vector<Fiber> &fibers, int order, std::mt19937 &random)
{
    std::vector<int> places(fibers.size()), lanes(WARP);
    std::iota(places.begin(), places.end(), 0);
    std::iota(lanes.begin(), lanes.end(), 0);
    if (order == BACKWARD) std::reverse(places.begin(), places.end());
    if (order == BACKWARD) std::reverse(lanes.begin(), lanes.end());
    for (Fiber &fiber : fibers) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        fiber.state = READY;
        fiber.begun = false;
        fiber.turn = 0;
        fiber.mask = 0;
        makecontext(&fiber.context, run_fiber, 0);
    }
    while (!failure) {
        if (order == SHUFFLED) std::shuffle(places.begin(), places.end(), random);
        for (int place : places) {
            run_thread(fibers, place);
            // A warp goes on as far as it can before others begin; of shuffled ones some are left behind.
            while (fibers[place].state == AT_WARP && release_warp(fibers, place)) {
                if (order == SHUFFLED && random() % 4 == 0) break;
                if (order == SHUFFLED) std::shuffle(lanes.begin(), lanes.end(), random);
                for (int lane : lanes) run_thread(fibers, place / WARP * WARP + lane);
            }
        }
        int in_state[4] = {};
        for (const Fiber &fiber : fibers) in_state[fiber.state]++;
        if (in_state[READY]) continue;
        // Threads that came to their collective after their turn.
        bool released = false;
        for (int place : places) released |= fibers[place].state == AT_WARP && release_warp(fibers, place);
        if (released) continue;
        if (in_state[AT_WARP]) failure = "threads of a warp wait for others that do not come";
        if (!in_state[AT_BLOCK]) return;
        for (Fiber &fiber : fibers)
            if (fiber.state == AT_BLOCK) fiber.state = READY;
    }
}

template <typename... A, size_t... I>
void call(void (*kernel)(A...), void **arguments, std::index_sequence<I...>)
{
    kernel(*(std::remove_const_t<A> *)arguments[I]...);
}

template <typename... A>
void call(void (*kernel)(A...), void **arguments)
{
    call(kernel, arguments, std::index_sequence_for<A...>{});
}

// Null, or what went wrong.
static const char *run_grid(
    const unsigned *grid, unsigned threads, size_t dynamic_bytes, void (*kernel)(void **), void **arguments, int order,
    unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<Fiber> fibers(threads);
    body = kernel;
    body_arguments = arguments;
    failure = nullptr;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {threads, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) {
                memset(shared_memory, 0xA5, dynamic_bytes + GUARD);
                run_block(fibers, order, random);
                for (int byte = 0; byte < GUARD; byte++)
                    if (shared_memory[dynamic_bytes + byte] != 0xA5) failure = "writes beyond the shared memory";
                if (failure) return failure;
            }
    return nullptr;
}
