/* The part of the CUDA runtime that the backend cuda calls, emulated on the host for tests on
 * machines without a GPU.
 *
 * With this folder in the include path before the header of the toolkit, an ordinary compiler
 * builds the backend and its kernels. host_cuda.cc emulates devices, streams and memory;
 * cuda_runtime.h emulates kernels. The values of enumerators are those of the toolkit. A test
 * controls it through host_cuda.
 *
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef HOST_CUDA_RUNTIME_API_H
#define HOST_CUDA_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#define CUDART_VERSION 13000
#define HOST_CUDA 1 /* identifies this header */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureImplicit = 906,
    cudaErrorStreamCaptureWrongThread = 908
} cudaError_t;

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };

enum cudaMemoryType { cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2 };

struct cudaPointerAttributes {
    enum cudaMemoryType type;
};

typedef struct host_cuda_event *cudaEvent_t;
enum { cudaEventDisableTiming = 2, cudaEventInterprocess = 4 };

/* A process opens memory and events of another one by these. */
typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;
typedef struct cudaIpcEventHandle_st {
    char reserved[64];
} cudaIpcEventHandle_t;
enum { cudaIpcMemLazyEnablePeerAccess = 1 };

enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };

/* No stream can be captured by a program, so there are no graphs. */
typedef struct host_cuda_graph *cudaGraph_t;
typedef struct host_cuda_replay *cudaGraphExec_t;

typedef struct host_cuda_stream *cudaStream_t;
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
enum { cudaStreamNonBlocking = 1 };

/* Pools exist, but their memory comes from cudaMalloc. */
typedef struct host_cuda_pool *cudaMemPool_t;
enum cudaDeviceAttr {
    cudaDevAttrClockRate = 13,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMemoryPoolsSupported = 115
};
enum cudaMemAllocationType { cudaMemAllocationTypePinned = 1 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1 };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
struct cudaMemLocation {
    enum cudaMemLocationType type;
    int id;
};
struct cudaMemPoolProps {
    enum cudaMemAllocationType allocType;
    struct cudaMemLocation location;
};

struct cudaDeviceProp {
    char name[256];
    int major, minor;
    size_t totalGlobalMem;
    int multiProcessorCount;
    size_t sharedMemPerMultiprocessor;
    int l2CacheSize;
};

struct cudaFuncAttributes {
    int ptxVersion;
    size_t sharedSizeBytes;
};

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceCanAccessPeer(int *possible, int device, int other);
cudaError_t cudaDeviceEnablePeerAccess(int other, unsigned flags);
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream);
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *kernel);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel, int threads, size_t shared);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *replay, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t replay, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t replay);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device);
/* Only memory of whole blocks of 2 MiB, as the programming guide recommends. */
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *memory);
cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle, unsigned flags);
cudaError_t cudaIpcCloseMemHandle(void *memory);
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaEventDestroy(cudaEvent_t event);
enum { cudaHostAllocPortable = 1, cudaHostAllocMapped = 2 };
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *memory);

/* Settings and observations of a test. */
struct host_cuda {
    int devices;              /* default 2 */
    int major, minor;         /* of every device; default 9.0 */
    cudaError_t driver_error; /* returned by the search for devices; default none */
    int no_driver;            /* 1: the driver's version is 0; default 0 */
    cudaError_t sticky_error; /* returned by every call from now on */
    cudaError_t launch_error; /* returned by every launch */
    int capturing;            /* all streams are being captured: launches are recorded, not run */
    int capture_broken;       /* set when a call invalidates the capture */
    int64_t allocations;      /* blocks of device memory not freed */
    int64_t launches;
    int granted;       /* number of allocations of device memory to grant before any is refused */
    int refused;       /* number of allocations of device memory to refuse after these */
    size_t most_bytes; /* largest block of device memory; default 8 GiB */
    int64_t others;    /* streams, events, pools, and blocks of page-locked memory that exist */
    int without_pools; /* devices have no memory pools; default 0 */
    int memory_khz;    /* of the memory, which moves 256 bytes in a cycle; default 281,250, as fast as that of an
                          H200 for each of the 4 multiprocessors of 1 GHz */
    int without_peers; /* devices cannot access each other's memory; default 0 */
    /* Blocks of a cooperative launch run at the same time, each in a process of its own, and may wait
     * for each other; default 0: devices have no such launches. The blocks share the device memory that
     * is allocated meanwhile, and nothing else. */
    int cooperative;
    /* Devices report that kernels run at the same time; default 0. It is not true: a launch ends
     * before another one begins, so kernels must not wait for each other. */
    int concurrent;
    /* Returned when a pool is created, and when its threshold is set. */
    cudaError_t pool_error, pool_attribute_error;
    int64_t from_pools, trims;
    int64_t freed;   /* blocks freed since the last wait for a stream */
    int64_t locked;  /* bytes of page-locked memory */
    uint64_t order;  /* seed of the order in which the threads of a block run between barriers */
    int without_ipc; /* processes cannot open each other's memory; default 0 */
    int processes;   /* other processes may open memory of whole blocks of 2 MiB; default 0 */
};
extern struct host_cuda host_cuda;

#ifdef __cplusplus
}
#endif
#endif
