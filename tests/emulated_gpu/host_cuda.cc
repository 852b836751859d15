/* Devices, streams, memory and blocks of the CUDA emulation. See cuda_runtime_api.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#include "tests/emulated_gpu/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#include "core/splitmix.h"
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1 /* the name in gcc */
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

struct host_cuda_stream {
    int device;
};

struct host_cuda_event {
    bool recorded;
};

static struct host_cuda at_first(void)
{
    struct host_cuda first = {};
    first.devices = 2;
    first.major = 9;
    first.most_bytes = (size_t)1 << 33;
    first.memory_khz = 281250;
    first.order = 1;
    return first;
}

struct host_cuda host_cuda = at_first();

static thread_local int current_device = 0;
static thread_local cudaError_t last_error = cudaSuccess;

/* Threads with contexts of their own take turns: the kernels share blockIdx, shared memory and
 * fibers. */
static std::recursive_mutex turns;
typedef std::lock_guard<std::recursive_mutex> in_turn;

static cudaError_t report(cudaError_t error)
{
    if (host_cuda.sticky_error != cudaSuccess)
        error = host_cuda.sticky_error;
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

/* For calls that invalidate a capture. */
static cudaError_t report_outside_capture(cudaError_t error)
{
    if (host_cuda.capturing) {
        host_cuda.capture_broken = 1;
        error = cudaErrorStreamCaptureUnsupported;
    }
    return report(error);
}

static int device_of(cudaStream_t stream)
{
    return stream == cudaStreamLegacy || stream == cudaStreamPerThread ? current_device : stream->device;
}

/* ---------------------------------------------------------- the C functions of the runtime */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = host_cuda.driver_error == cudaSuccess ? host_cuda.devices : 0;
    return report(host_cuda.driver_error);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = host_cuda.no_driver ? 0 : 12040;
    return report(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current_device;
    return report(host_cuda.driver_error);
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= host_cuda.devices)
        return report(cudaErrorInvalidDevice);
    current_device = device;
    return report(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "host playing GPU %d", device);
    properties->major = host_cuda.major;
    properties->minor = host_cuda.minor;
    properties->totalGlobalMem = (size_t)1 << 34;
    properties->multiProcessorCount = 4;
    properties->sharedMemPerMultiprocessor = 228 << 10;
    properties->l2CacheSize = 1 << 20;
    return report(cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int *possible, int, int)
{
    *possible = !host_cuda.without_peers;
    return report(cudaSuccess);
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned)
{
    return report(host_cuda.without_peers ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
    std::snprintf(id, (size_t)size, "0000:%02x:00.0", (unsigned)device);
    return report(cudaSuccess);
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = host_cuda.sticky_error;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    static char text[64];
    std::snprintf(text, sizeof text, "CUDA error %d, played on the host", (int)error);
    return text;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaError";
}

/* Memory that processes share: that of the blocks of a kernel, and what other processes may open. */
struct shared_block {
    size_t bytes;
    int file;    /* without a name; -1: only processes that this one starts have it */
    bool opened; /* that of another process */
};
static std::map<void *, shared_block> shared_memory;

static bool map_shared(void **memory, shared_block block)
{
    *memory = mmap(NULL, block.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (block.file < 0 ? MAP_ANONYMOUS : 0),
                   block.file, 0);
    if (*memory == MAP_FAILED)
        return false;
    shared_memory[*memory] = block;
    return true;
}

static void unmap_shared(std::map<void *, shared_block>::iterator block)
{
    munmap(block->first, block->second.bytes);
    if (block->second.file >= 0)
        close(block->second.file);
    shared_memory.erase(block);
}

/* Memory that other processes can open. */
static bool map_file(void **memory, size_t bytes)
{
    const int file = memfd_create("emulated GPU", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0 && map_shared(memory, {bytes, file, false}))
        return true;
    if (file >= 0)
        close(file);
    return false;
}

/* The exact size, so that a memory checker detects an access past the end. */
static bool find_memory(void **memory, size_t bytes)
{
    const size_t whole = (size_t)2 << 20;
    if (host_cuda.cooperative)
        return map_shared(memory, {bytes, -1, false});
    return host_cuda.processes && bytes > 0 && bytes % whole == 0 ? map_file(memory, bytes)
                                                                  : posix_memalign(memory, 256, bytes) == 0;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    const in_turn lock(turns);
    cudaError_t error = report_outside_capture(cudaSuccess);
    const bool refuses = host_cuda.granted == 0 && host_cuda.refused > 0;
    host_cuda.granted -= host_cuda.granted > 0;
    if (error == cudaSuccess && (bytes > host_cuda.most_bytes || refuses)) {
        host_cuda.refused -= refuses;
        error = report(cudaErrorMemoryAllocation);
    }
    if (error == cudaSuccess) {
        if (!find_memory(memory, bytes))
            return report(cudaErrorMemoryAllocation);
        std::memset(*memory, 0xa5, bytes);
        host_cuda.allocations++;
    }
    return error;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int)
{
    switch (attribute) {
    case cudaDevAttrClockRate:
        *value = 1000000;
        break;
    case cudaDevAttrMemoryClockRate:
        *value = host_cuda.memory_khz;
        break;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = 1024;
        break;
    case cudaDevAttrCooperativeLaunch:
        *value = host_cuda.cooperative;
        break;
    case cudaDevAttrConcurrentKernels:
        *value = host_cuda.concurrent;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = HOST_CUDA_SHARED_BYTES;
        break;
    case cudaDevAttrMemoryPoolsSupported:
        *value = !host_cuda.without_pools;
        break;
    }
    return report(cudaSuccess);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *)
{
    if (host_cuda.pool_error != cudaSuccess)
        return report(host_cuda.pool_error);
    *pool = (cudaMemPool_t)(new char);
    host_cuda.others++;
    return report(cudaSuccess);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, enum cudaMemPoolAttr, void *)
{
    return report(host_cuda.pool_attribute_error);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t)
{
    host_cuda.trims++;
    return report(cudaSuccess);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    delete (char *)pool;
    host_cuda.others--;
    return report(cudaSuccess);
}

cudaError_t cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t, cudaStream_t)
{
    const in_turn lock(turns);
    host_cuda.from_pools++;
    return cudaMalloc(memory, bytes);
}

cudaError_t cudaFree(void *memory)
{
    const in_turn lock(turns);
    const cudaError_t error = report_outside_capture(cudaSuccess);
    if (error == cudaSuccess && memory != NULL) {
        const auto shared = shared_memory.find(memory);
        if (shared != shared_memory.end()) {
            unmap_shared(shared);
        } else {
            std::free(memory);
        }
        host_cuda.allocations--;
        host_cuda.freed++;
    }
    return error;
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    return device_of(stream) != current_device ? report(cudaErrorInvalidResourceHandle) : cudaFree(memory);
}

/* Whether work may be queued on the stream now; the error is reported. */
static cudaError_t may_queue(cudaStream_t stream)
{
    return device_of(stream) != current_device ? report(cudaErrorInvalidResourceHandle)
                                               : report_outside_capture(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind, cudaStream_t stream)
{
    const cudaError_t error = may_queue(stream);
    if (error == cudaSuccess)
        std::memcpy(to, from, bytes);
    return error;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes, cudaStream_t stream)
{
    if (host_cuda.without_peers)
        return report(cudaErrorInvalidValue);
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    const cudaError_t error = may_queue(stream);
    if (error == cudaSuccess)
        std::memset(memory, value, bytes);
    return error;
}

/* Reports the oldest architecture. Blocks run one after the other here, so kernels whose blocks
 * wait for later ones must not be chosen. */
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *)
{
    *attributes = {};
    attributes->ptxVersion = 80;
    return report(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int, size_t)
{
    *blocks = 4;
    return report(cudaSuccess);
}

/* Dynamic shared memory that kernels may have beyond what all may. */
enum { SHARED_OF_ALL = 48 * 1024 };
static std::map<const void *, size_t> shared_of_kernel;

cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value)
{
    const in_turn lock(turns);
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
        shared_of_kernel[kernel] = (size_t)value;
    return report(cudaSuccess);
}

static size_t most_shared(const void *kernel)
{
    const auto set = shared_of_kernel.find(kernel);
    return set != shared_of_kernel.end() && set->second > SHARED_OF_ALL ? set->second : (size_t)SHARED_OF_ALL;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    *stream = new host_cuda_stream{current_device};
    host_cuda.others++;
    return report(cudaSuccess);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = *greatest = 0;
    return report(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete stream;
    host_cuda.others--;
    return report(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    host_cuda.freed = 0;
    return report_outside_capture(cudaSuccess);
}

/* Work is done when it is queued, so a recorded event has occurred. Waiting for an event that was
 * not recorded is an error. */
static cudaError_t wait_for(cudaEvent_t event)
{
    return report(event->recorded ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t event, unsigned)
{
    return wait_for(event);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new host_cuda_event{false};
    host_cuda.others++;
    return report(cudaSuccess);
}

/* The process and its file, whose bytes are found by fstat. */
struct ipc_name {
    pid_t process;
    int file;
};

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory)
{
    const in_turn lock(turns);
    const auto block = shared_memory.find(memory);
    if (host_cuda.without_ipc || block == shared_memory.end() || block->second.file < 0)
        return report(cudaErrorInvalidValue);
    const ipc_name name = {getpid(), block->second.file};
    std::memcpy(handle, &name, sizeof name);
    return report(cudaSuccess);
}

cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned)
{
    const in_turn lock(turns);
    ipc_name name;
    char path[64];
    struct stat facts;
    std::memcpy(&name, &handle, sizeof name);
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)name.process, name.file);
    const int file = host_cuda.without_ipc || name.process == getpid() ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0 && fstat(file, &facts) == 0 && map_shared(memory, {(size_t)facts.st_size, file, true}))
        return report(cudaSuccess);
    if (file >= 0)
        close(file);
    return report(cudaErrorInvalidValue);
}

cudaError_t cudaIpcCloseMemHandle(void *memory)
{
    const in_turn lock(turns);
    const auto block = shared_memory.find(memory);
    if (block == shared_memory.end() || !block->second.opened)
        return report(cudaErrorInvalidValue);
    unmap_shared(block);
    return report(cudaSuccess);
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t)
{
    *handle = {};
    return report(host_cuda.without_ipc ? cudaErrorInvalidValue : cudaSuccess);
}

/* What another process has queued is done, so its event has occurred. */
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t)
{
    *event = new host_cuda_event{true};
    host_cuda.others++;
    return report(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    event->recorded = true;
    return report(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return wait_for(event);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return wait_for(event);
}

cudaError_t cudaStreamQuery(cudaStream_t)
{
    return report_outside_capture(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    host_cuda.others--;
    return report(cudaSuccess);
}

static std::map<const char *, size_t> locked_blocks;

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    const in_turn lock(turns);
    if (posix_memalign(memory, 4096, bytes) != 0)
        return report(cudaErrorMemoryAllocation);
    locked_blocks[(const char *)*memory] = bytes;
    host_cuda.others++;
    host_cuda.locked += (int64_t)bytes;
    return report(cudaSuccess);
}

cudaError_t cudaFreeHost(void *memory)
{
    const in_turn lock(turns);
    const auto block = locked_blocks.find((const char *)memory);
    if (block == locked_blocks.end())
        return report(cudaErrorInvalidValue);
    host_cuda.others--;
    host_cuda.locked -= (int64_t)block->second;
    locked_blocks.erase(block);
    std::free(memory);
    return report(cudaSuccess);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory)
{
    const in_turn lock(turns);
    const char *const at = (const char *)memory;
    auto block = locked_blocks.upper_bound(at);
    const bool behind = block != locked_blocks.begin();
    const bool locked = behind && (--block, at < block->first + block->second);
    attributes->type = locked ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    return report(cudaSuccess);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, enum cudaStreamCaptureStatus *status)
{
    *status = host_cuda.capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return report(cudaSuccess);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, enum cudaStreamCaptureMode)
{
    return report(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *)
{
    return report(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *, cudaGraph_t, unsigned long long)
{
    return report(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t)
{
    return report(cudaErrorInvalidValue);
}

cudaError_t cudaGraphDestroy(cudaGraph_t)
{
    return report(cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t)
{
    return report(cudaErrorInvalidValue);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    *device = device_of(stream);
    return report(cudaSuccess);
}

/* ------------------------------------------------------------------ blocks */

/* Blocks and grids have one dimension. */
dim3 threadIdx(0, 0, 0), blockIdx(0, 0, 0), blockDim, gridDim;

namespace
{

enum { LANES = 32, MOST_THREADS = 1024, STACK = 256 * 1024, WIDEST = 64 };

enum fiber_state { READY, AT_BARRIER, AT_EXCHANGE, DONE };

/* Switches between stacks. swapcontext makes a system call each time, which is most of its cost. On
 * x86-64 the switch therefore pushes only the registers that the calling convention preserves, and
 * changes the stack (System V ABI, AMD64 supplement, figure 3.4; kernels do not change the rounding
 * mode). The address sanitizer is notified of each switch. */
#if defined(__x86_64__)
struct context {
    char *top; /* of a stack that is not running */
    const void *stack;
    size_t bytes;
    void *checkers;
};

extern "C" void host_cuda_switch(char **from, char *to);
__asm__(".pushsection .text\n"
        ".globl host_cuda_switch\n"
        ".hidden host_cuda_switch\n"
        ".type host_cuda_switch, @function\n"
        "host_cuda_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size host_cuda_switch, . - host_cuda_switch\n"
        ".popsection\n");

#if defined(__SANITIZE_ADDRESS__)
void leaves(context &from, const context &to)
{
    __sanitizer_start_switch_fiber(&from.checkers, to.stack, to.bytes);
}
void arrives(const context &here)
{
    __sanitizer_finish_switch_fiber(here.checkers, NULL, NULL);
}
/* Describes the stack of the caller. */
void describe(context &here)
{
    pthread_attr_t attributes;
    void *stack = NULL;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &stack, &here.bytes);
    pthread_attr_destroy(&attributes);
    here.stack = stack;
}
#else
void leaves(const context &, const context &)
{
}
void arrives(const context &)
{
}
void describe(context &)
{
}
#endif

void go(context &from, const context &to)
{
    leaves(from, to);
    host_cuda_switch(&from.top, to.top);
    arrives(from);
}

/* The first switch to it returns to `function`, which finds the stack as after a call. */
void make(context &made, char *stack, size_t bytes, void (*function)())
{
    enum { PRESERVED = 6 };
    char *const top = (char *)((uintptr_t)(stack + bytes) / 16 * 16) - 16;
    made = {top - PRESERVED * sizeof(uint64_t), stack, bytes, NULL};
    std::memset(made.top, 0, (size_t)(stack + bytes - made.top));
    std::memcpy(top, &function, sizeof function);
}

#else
typedef ucontext_t context;

void go(context &from, const context &to)
{
    swapcontext(&from, &to);
}

void arrives(const context &)
{
}

void make(context &made, char *stack, size_t bytes, void (*function)())
{
    getcontext(&made);
    made.uc_stack.ss_sp = stack;
    made.uc_stack.ss_size = bytes;
    made.uc_link = NULL;
    makecontext(&made, function, 0);
}

void describe(context &)
{
}
#endif

struct stack {
    context here;
    std::unique_ptr<char[]> memory;
};

struct fiber {
    stack *on;        /* NULL: has not begun */
    const char *file; /* of the barrier where it waits */
    int line;
    fiber_state state;
};

/* Values that the lanes of a warp publish, `bytes` each. There are two places in turn, because a lane
 * may be one exchange ahead of another. */
struct warp {
    int waiting; /* lanes that wait for the others */
    unsigned turn;
    size_t bytes;
    alignas(64) char lanes[2][LANES * WIDEST];
};

fiber fibers[MOST_THREADS];
warp warps[MOST_THREADS / LANES];
stack stacks[MOST_THREADS];
stack *unused[MOST_THREADS]; /* the last one was used most recently */
int unused_count, made_count;
context scheduler;
/* The thread that runs, its warp, and the lanes of it that follow. */
int running;
warp *current;
int first_lane, lane_count, lanes_left;
/* The order of the lanes: each is `step` places, an odd number, behind the one before, and the place of
 * a lane is its number with the bits `flip` inverted. */
unsigned place, step, flip;
/* The barrier where threads of the block wait, and how many; the threads that have ended. */
struct {
    const char *file;
    int line, threads, yes, result;
} barrier;
int done;
void (*body)(const void *);
const void *body_arguments;

[[noreturn]] void give_up(const char *what, int thread)
{
    std::fprintf(stderr, "host_cuda: block %u, thread %d: %s (%s:%d)\n", blockIdx.x, thread, what,
                 fibers[thread].file ? fibers[thread].file : "no barrier yet", fibers[thread].line);
    std::abort();
}

void run_fiber();

/* Each stack is created once, because creating a context takes two system calls. */
stack *make_stack()
{
    stack &made = stacks[made_count];
    /* The tops of the stacks have different offsets in their pages; with equal offsets they would
     * compete for the same few cache lines. */
    const size_t bytes = STACK + (size_t)(made_count++ % 256) * 576;
    made.memory.reset(new char[bytes]);
    make(made.here, made.memory.get(), bytes, run_fiber);
    return &made;
}

/* Makes the next lane of the order the running one. Returns its context, after the last lane that of
 * the scheduler. */
inline context &next_context()
{
    if (lanes_left-- == 0)
        return scheduler;
    unsigned lane;
    do {
        place = (place + step) % LANES;
        lane = place ^ flip;
    } while (lane >= (unsigned)lane_count);
    running = first_lane + (int)lane;
    threadIdx.x = (unsigned)running;
    fiber &f = fibers[running];
    if (f.on == NULL)
        f.on = unused_count > 0 ? unused[--unused_count] : make_stack();
    return f.on->here;
}

/* Switches from this fiber, which is the running one, to the next. Returns when it runs again. */
inline void yield(fiber &f)
{
    context &mine = f.on->here;
    go(mine, next_context());
}

/* Runs threads on one stack, one after the other. If the next thread of the order has not begun, it
 * begins on the stack of the one that has ended, which is in the cache. */
void run_fiber()
{
    stack *const mine = fibers[running].on;
    arrives(mine->here);
    for (;;) {
        body(body_arguments);
        fibers[running].state = DONE;
        done++;
        unused[unused_count++] = mine;
        const context &next = next_context();
        if (&next != &mine->here)
            go(mine->here, next);
    }
}

/* Runs the lanes of a warp to their next exchange, barrier or end, in a random order. Returns whether
 * all are at an exchange, so that the warp can go on. */
bool run_warp(int w, int threads, uint64_t random)
{
    current = &warps[w];
    current->waiting = 0;
    current->turn ^= 1;
    host_cuda_lanes = current->lanes[current->turn];
    first_lane = w * LANES;
    lane_count = lanes_left = threads - first_lane < LANES ? threads - first_lane : LANES;
    place = (unsigned)random;
    step = (unsigned)(random >> 5) | 1;
    flip = (unsigned)(random >> 10) % LANES;
    go(scheduler, next_context());
    return current->waiting == lane_count;
}

/* No warp can go on. Returns true if all threads wait at one barrier, false if all are done. */
bool release_barrier(int threads)
{
    if (done == threads)
        return false;
    for (int t = 0; t < threads && barrier.threads != threads; t++)
        if (fibers[t].state == AT_EXCHANGE)
            give_up("waits in a shuffle that not all lanes reach", t);
    for (int t = 0; t < threads && barrier.threads != threads; t++) {
        if (fibers[t].state == DONE)
            give_up("ended while others wait at a barrier", t);
        if (fibers[t].file != fibers[0].file || fibers[t].line != fibers[0].line)
            give_up("waits at another barrier than thread 0", t);
    }
    barrier.result = barrier.yes;
    barrier.threads = barrier.yes = 0;
    return true;
}

/* Runs a warp from one exchange to the next, then in three of four cases the same again, otherwise
 * another one. So warps overtake each other, and the stacks of a warp stay in the cache. */
void run_block(int threads)
{
    int ready[MOST_THREADS / LANES];
    const int count = (threads + LANES - 1) / LANES;
    for (int t = 0; t < threads; t++)
        fibers[t] = {NULL, NULL, 0, READY};
    barrier.threads = barrier.yes = done = 0;
    do {
        int left = count, k = -1;
        for (int w = 0; w < count; w++)
            ready[w] = w;
        while (left > 0) {
            const uint64_t random = splitmix_next(&host_cuda.order);
            if (k < 0 || (random >> 15) % 4 == 0)
                k = (int)((random >> 32) * (unsigned)left >> 32);
            if (!run_warp(ready[k], threads, random)) {
                ready[k] = ready[--left];
                k = -1;
            }
        }
    } while (release_barrier(threads));
}

/* Runs the blocks of a cooperative launch: this process has the first one. */
void run_together(unsigned blocks, int threads)
{
    std::vector<pid_t> others;
    for (unsigned b = 1; b < blocks; b++) {
        const pid_t other = fork();
        if (other == 0) {
            blockIdx.x = b;
            run_block(threads);
            _exit(0);
        }
        others.push_back(other);
    }
    blockIdx.x = 0;
    run_block(threads);
    for (pid_t other : others) {
        int status = 0;
        if (other < 0 || waitpid(other, &status, 0) != other || status != 0)
            give_up("the process of another block failed", 0);
    }
}

} // namespace

char *host_cuda_lanes;

int host_cuda_barrier(const char *file, int line, bool yes)
{
    fiber &f = fibers[running];
    f.state = AT_BARRIER;
    f.file = file;
    f.line = line;
    if (barrier.threads == 0) {
        barrier.file = file;
        barrier.line = line;
    }
    barrier.threads += barrier.file == file && barrier.line == line;
    barrier.yes += yes;
    yield(f);
    return barrier.result;
}

void host_cuda_wait_for_lanes(size_t bytes)
{
    fiber &f = fibers[running];
    f.state = AT_EXCHANGE;
    if (current->waiting++ == 0)
        current->bytes = bytes;
    else if (current->bytes != bytes)
        give_up("exchanges a value of another size than its warp", running);
    yield(f);
}

unsigned host_cuda_match(unsigned value)
{
    const unsigned *const values = (const unsigned *)host_cuda_lanes;
    std::memcpy(host_cuda_lanes + (size_t)(running % LANES) * sizeof value, &value, sizeof value);
    host_cuda_wait_for_lanes(sizeof value);
    unsigned same = 0;
    for (int lane = 0; lane < LANES; lane++)
        same |= (unsigned)(values[lane] == value) << lane;
    return same;
}

int host_cuda_least(int value)
{
    int *const least = (int *)host_cuda_lanes;
    *least = current->waiting > 0 && *least < value ? *least : value;
    host_cuda_wait_for_lanes(sizeof value);
    return *least;
}

unsigned host_cuda_ballot(bool yes)
{
    unsigned *const bits = (unsigned *)host_cuda_lanes;
    *bits = (current->waiting > 0 ? *bits : 0) | (unsigned)yes << running % LANES;
    host_cuda_wait_for_lanes(sizeof yes);
    return *bits;
}

alignas(16) unsigned char host_cuda_shared[HOST_CUDA_SHARED_BYTES];

cudaError_t host_cuda_launch(const cudaLaunchConfig_t &config, const void *kernel, void (*thread)(const void *),
                             const void *arguments)
{
    const in_turn lock(turns);
    cudaError_t error = host_cuda.launch_error;
    if (config.gridDim.x == 0 || config.gridDim.x > 0x7fffffffu || config.blockDim.x == 0 ||
        config.blockDim.x > MOST_THREADS || config.dynamicSmemBytes > HOST_CUDA_SHARED_BYTES ||
        config.dynamicSmemBytes > most_shared(kernel))
        error = cudaErrorInvalidValue;
    else if (device_of(config.stream) != current_device)
        error = cudaErrorInvalidResourceHandle;
    error = report(error);
    if (error != cudaSuccess || host_cuda.capturing)
        return error;
    host_cuda.launches++;
    static pthread_t described; /* the thread whose stack the scheduler has */
    if (body == NULL || !pthread_equal(described, pthread_self())) {
        describe(scheduler);
        described = pthread_self();
    }
    body = thread;
    body_arguments = arguments;
    gridDim = config.gridDim;
    blockDim = config.blockDim;
    const bool cooperative = config.numAttrs > 0 && config.attrs->id == cudaLaunchAttributeCooperative;
    if (cooperative && host_cuda.cooperative) {
        run_together(config.gridDim.x, (int)config.blockDim.x);
        return cudaSuccess;
    }
    for (unsigned b = 0; b < config.gridDim.x; b++) {
        blockIdx.x = b;
        run_block((int)config.blockDim.x);
    }
    return cudaSuccess;
}
