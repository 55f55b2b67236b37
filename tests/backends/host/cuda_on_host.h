// CUDA C++ for a host compiler: what hpcvdj's kernels use of it.  The threads of a block are fibers that run one after
// another from barrier to barrier, forward, backward or shuffled, so that a missing barrier changes the result.
// Blocks run one after another; dynamic shared memory is filled with rubbish before each.
#include <ucontext.h>

#include <algorithm>
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
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct Index {
    unsigned x = 0, y = 0, z = 0;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

inline int __popcll(unsigned long long word) { return __builtin_popcountll(word); }
inline int __clzll(unsigned long long word) { return word ? __builtin_clzll(word) : 64; }
inline int __ffsll(unsigned long long word) { return __builtin_ffsll((long long)word); }

template <typename T, typename U>
T atomicAdd(T *place, U value)
{
    T before = *place;
    *place = before + (T)value;
    return before;
}

struct Fiber {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(1 << 16);
    bool over = false;
};

static ucontext_t scheduler;
static Fiber *running;
static void (*body)(void **);
static void **body_arguments;

static void run_fiber()
{
    body(body_arguments);
    running->over = true;
    swapcontext(&running->context, &scheduler);
}

inline void __syncthreads() { swapcontext(&running->context, &scheduler); }

template <typename T>
inline T __ldg(const T *place)
{
    return *place;
}

// What each thread hands to the others.  These barriers are the block's: all its threads have to come here together.
static unsigned long long handed[1024];

template <typename T>
inline T __shfl_xor_sync(unsigned, T value, int apart)
{
    memcpy(&handed[threadIdx.x], &value, sizeof value);
    __syncthreads();
    T taken;
    memcpy(&taken, &handed[threadIdx.x ^ apart], sizeof taken);
    __syncthreads();
    return taken;
}

inline int __syncthreads_or(int value)
{
    handed[threadIdx.x] = value;
    __syncthreads();
    int any = 0;
    for (unsigned k = 0; k < blockDim.x; k++) any |= handed[k] != 0;
    __syncthreads();
    return any;
}

enum Order { FORWARD, BACKWARD, SHUFFLED };

static void run_block(std::vector<Fiber> &fibers, int order, std::mt19937 &random)
{
    std::vector<int> places(fibers.size());
    std::iota(places.begin(), places.end(), 0);
    if (order == BACKWARD) std::reverse(places.begin(), places.end());
    for (Fiber &fiber : fibers) {
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        fiber.over = false;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool some = true; some;) {
        some = false;
        if (order == SHUFFLED) std::shuffle(places.begin(), places.end(), random);
        for (int place : places) {
            if (fibers[place].over) continue;
            running = &fibers[place];
            threadIdx.x = place;
            swapcontext(&scheduler, &running->context);
            some = some || !running->over;
        }
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

static void run_grid(
    const unsigned *grid, unsigned threads, unsigned char *dynamic, size_t dynamic_bytes, void (*kernel)(void **),
    void **arguments, int order, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<Fiber> fibers(threads);
    body = kernel;
    body_arguments = arguments;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {threads, 1, 1};
    for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++) {
                memset(dynamic, 0xA5, dynamic_bytes);
                run_block(fibers, order, random);
            }
}
