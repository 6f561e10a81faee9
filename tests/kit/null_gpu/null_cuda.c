/* A CUDA runtime without a card: memory of the device is memory of the machine, copies are real, kernels do nothing.
 *
 * Preloaded in front of libcudart, libcublas and libcuda, of which it defines what torch calls; library.py generates
 * functions that do nothing for the rest. Everything queued is done at once. It is libnvidia-ml, too.
 *
 * Variables: NULL_CUDA_FOLDER (required), NULL_CUDA_CARDS that CUDA can use (1), NULL_CUDA_LISTED by NVML (1),
 * NULL_CUDA_MEMORY (bytes of each, 2 GiB), NULL_CUDA_PARTS of the first card (MIG; 0: it is whole).
 * Each process that has called CUDA has a file in the folder, by its pid: PAGE bytes with the names of FIELDS, then
 * their values, then four numbers for each thread (threads below). The test maps it; it may write `broken` and `fuse`.
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define CARDS 8
#define FIRST_PART 4 /* the place of the first part, behind all cards, where there are parts */
#define THREADS 128
/* Copies by the memory on the machine's side; `default_…` are those on the default stream. In bytes: …_bytes, memory,
 * peak, pinned, and `card_N`, the memory in use on card N, or part N - 4. Threads wait for streams, cards (device) or events.
 * `contexts` has a bit for each card, or part, on which calls have made a context, as CUDA 13 does for the current one.
 * `fuse` is how many kernels and replays are left until one breaks the context; 0 for none. */
#define FIELDS(X)                                                                                    \
    X(to_card_pinned) X(to_card_pageable) X(to_card_bytes) X(default_to_card)                        \
    X(from_card_pinned) X(from_card_pageable) X(from_card_bytes) X(default_from_card) X(within_card) \
    X(stream_syncs) X(device_syncs) X(event_syncs)                                                   \
    X(launches) X(captures) X(failed_captures) X(captured_launches) X(replays)                       \
    X(allocations) X(memory) X(peak) X(pinned) X(out_of_memory) X(forks) X(broken) X(fuse)           \
    X(contexts)                                                                                      \
    X(card_0) X(card_1) X(card_2) X(card_3) X(card_4) X(card_5) X(card_6) X(card_7)
#define DECLARE(name) long long name;
#define NAME(name) #name " "
enum { THREAD, WAITS, COPIES, KERNELS, OF_THREAD }; /* its id; waits, copies to a card, kernels and replays */
typedef struct { FIELDS(DECLARE) long long threads[THREADS][OF_THREAD]; } Counters;
static const char names[PAGE] = FIELDS(NAME);

static Counters unmapped, *counters = &unmapped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int cards = -1, owner, places[CARDS]; /* of the visible ones, among those that are installed */
static size_t total;
static __thread int current;
static __thread cudaError_t last;

#define ADD(field, n) __atomic_add_fetch(&counters->field, (n), __ATOMIC_RELAXED)

static void note_thread(int what) { /* of the calling one */
    long long thread = gettid();
    pthread_mutex_lock(&lock);
    for (int i = 0; i < THREADS; i++) {
        long long *each = counters->threads[i];
        if (each[THREAD] && each[THREAD] != thread) continue;
        each[THREAD] = thread;
        each[what]++;
        break;
    }
    pthread_mutex_unlock(&lock);
}

static void before_fork(void) { ADD(forks, 1); }

static int count_in(const char *name, int usually) {
    const char *given = getenv(name);
    int count = given ? atoi(given) : usually;
    return count > CARDS ? CARDS : count;
}
static int parts_of(int card) { return card ? 0 : count_in("NULL_CUDA_PARTS", 0); }

static int place_of(const char *word, int found) { /* of a device by its number or UUID; -1 for none */
    unsigned number;
    if (sscanf(word, "MIG-%8x", &number) == 1) return number && (int)number <= parts_of(0) ? FIRST_PART + (int)number - 1 : -1;
    if (sscanf(word, "GPU-%8x", &number) == 1) number--;
    else if (sscanf(word, "%d", (int *)&number) != 1) return -1;
    if ((int)number < 0 || (int)number >= found) return -1;
    return parts_of((int)number) ? FIRST_PART : (int)number;
}

static int visible(int found) { /* CUDA stops at the first entry that is no device, and finds none if one is repeated */
    char *copy, *word, *rest, *given = getenv("CUDA_VISIBLE_DEVICES");
    int count = 0, seen = 0, place;
    if (!given && parts_of(0)) given = "0";
    if (!given) for (; count < found; count++) places[count] = count;
    if (!given) return found;
    copy = strdup(given);
    for (word = strtok_r(copy, ",", &rest); word && count < CARDS; word = strtok_r(NULL, ",", &rest)) {
        if ((place = place_of(word, found)) < 0) break;
        if (seen & 1 << place) { count = 0; break; }
        seen |= 1 << place;
        places[count++] = place;
        if (place >= FIRST_PART) break; /* of parts, a process has one */
    }
    free(copy);
    return count;
}

static size_t memory_of(int place) {
    const char *given = getenv("NULL_CUDA_MEMORY");
    size_t whole = given ? strtoull(given, NULL, 10) : 2ull << 30;
    return place >= FIRST_PART && parts_of(0) ? whole / parts_of(0) : whole;
}

static void begin(void) {
    char path[4096];
    const char *folder = getenv("NULL_CUDA_FOLDER");
    void *file = MAP_FAILED;
    int descriptor = -1;
    size_t size = PAGE + sizeof *counters;
    snprintf(path, sizeof path, "%s/%d", folder ? folder : "", getpid());
    if (folder) descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor >= 0 && pwrite(descriptor, names, PAGE, 0) == PAGE && !ftruncate(descriptor, size))
        file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (descriptor >= 0) close(descriptor);
    if (file == MAP_FAILED) { fprintf(stderr, "null card: NULL_CUDA_FOLDER cannot be written: `%s`\n", path); abort(); }
    counters = (Counters *)((char *)file + PAGE);
    pthread_atfork(before_fork, NULL, NULL);
    owner = getpid();
    cards = visible(count_in("NULL_CUDA_CARDS", 1));
    total = memory_of(places[0]);
}

static cudaError_t start(void) {
    pthread_mutex_lock(&lock);
    if (cards < 0) begin();
    pthread_mutex_unlock(&lock);
    if (getpid() != owner) return last = cudaErrorInitializationError; /* as in a process that was forked */
    return counters->broken ? (last = counters->broken) : cudaSuccess;
}
#define START do { cudaError_t error_ = start(); if (error_) return error_; } while (0)

/* What needs a context on the current card makes one. */
static long long bit_of(int card) { return 1ll << places[card]; }
static void enter(void) { __atomic_or_fetch(&counters->contexts, bit_of(current), __ATOMIC_RELAXED); }

/* ---- memory */

enum { DEVICE = 1, PINNED, REGISTERED }; /* kinds; registered memory is pinned, and was there before */
typedef struct Block { char *at; size_t size; int kind, card; struct Block *next; } Block;
static Block *blocks;

static Block *block_of(const void *pointer) {
    Block *each = blocks;
    while (each && ((char *)pointer < each->at || (char *)pointer >= each->at + each->size)) each = each->next;
    return each;
}

static int kind_of(const void *pointer) {
    Block *found;
    pthread_mutex_lock(&lock);
    found = block_of(pointer);
    int kind = found ? found->kind : 0;
    pthread_mutex_unlock(&lock);
    return kind == REGISTERED ? PINNED : kind;
}

static long long *used(int card) { return &counters->card_0 + places[card]; }

static void note(char *at, size_t size, int kind) {
    Block *made = malloc(sizeof *made);
    *made = (Block){at, size, kind, current, blocks};
    blocks = made;
    if (kind != DEVICE) { ADD(pinned, size); return; }
    *used(current) += size;
    ADD(allocations, 1);
    if (ADD(memory, size) > counters->peak) counters->peak = counters->memory;
}

static cudaError_t take(void **pointer, size_t size, int kind) {
    cudaError_t error = cudaSuccess;
    char *at;
    if (!size) size = 1;
    enter();
    pthread_mutex_lock(&lock);
    if (kind == DEVICE && *used(current) + size > total) { ADD(out_of_memory, 1); error = cudaErrorMemoryAllocation; }
    else {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED) error = cudaErrorMemoryAllocation;
        else note(*pointer = at, size, kind);
    }
    pthread_mutex_unlock(&lock);
    return last = error;
}

static cudaError_t give(void *pointer) {
    pthread_mutex_lock(&lock);
    for (Block **at = &blocks; *at; at = &(*at)->next) {
        Block *found = *at;
        if (found->at != pointer) continue;
        *at = found->next;
        if (found->kind == DEVICE) { ADD(memory, -found->size); *used(found->card) -= found->size; }
        else ADD(pinned, -found->size);
        if (found->kind != REGISTERED) munmap(found->at, found->size);
        free(found);
        break;
    }
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) { START; return take(p, n, DEVICE); }
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) { START; return take(p, n, DEVICE); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned f) { START; return take(p, n, PINNED); }
cudaError_t cudaMallocHost(void **p, size_t n) { START; return take(p, n, PINNED); }
cudaError_t cudaFree(void *p) { START; return give(p); }
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { START; return give(p); }
cudaError_t cudaFreeHost(void *p) { START; return give(p); }
cudaError_t cudaHostUnregister(void *p) { START; return give(p); }
cudaError_t cudaHostRegister(void *p, size_t n, unsigned f) {
    START;
    enter();
    pthread_mutex_lock(&lock);
    note(p, n, REGISTERED);
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *left, size_t *all) {
    START;
    enter();
    *all = total;
    *left = total > (size_t)*used(current) ? total - *used(current) : 0;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *p) {
    START;
    memset(a, 0, sizeof *a);
    pthread_mutex_lock(&lock);
    Block *found = block_of(p);
    if (found) {
        a->type = found->kind == DEVICE ? cudaMemoryTypeDevice : cudaMemoryTypeHost;
        a->device = found->card;
        a->devicePointer = (void *)p;
        a->hostPointer = found->kind == DEVICE ? NULL : (void *)p;
    }
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

/* A kernel that breaks the context: calls after its launch tell of it, as on a card. */
static void burn(void) {
    if (counters->fuse && !ADD(fuse, -1)) counters->broken = cudaErrorAssert;
}

/* ---- graphs: a handle is the number of its kernels, and 1 */

static cudaStream_t captured;
static int capturing, spoilt;
static long long in_graph;

static int captures(cudaStream_t s) { return capturing && s == captured; }
static cudaError_t spoil(void) { spoilt = 1; return last = cudaErrorStreamCaptureUnsupported; }

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status) {
    *status = !captures(s) ? cudaStreamCaptureStatusNone
              : spoilt    ? cudaStreamCaptureStatusInvalidated
                          : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **d, const cudaGraphEdgeData **e,
                                     size_t *n) {
    if (status) cudaStreamIsCapturing(s, status);
    if (id) *id = counters->captures + 1;
    if (graph) *graph = (cudaGraph_t)1;
    if (n) *n = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode) {
    START;
    if (!s) return last = cudaErrorStreamCaptureUnsupported; /* the default stream cannot */
    capturing = 1, spoilt = 0, captured = s, in_graph = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph) {
    START;
    capturing = 0;
    if (spoilt) { ADD(failed_captures, 1); *graph = NULL; return last = cudaErrorStreamCaptureInvalidated; }
    ADD(captures, 1);
    *graph = (cudaGraph_t)(size_t)(in_graph + 1);
    return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long f) {
    START;
    *made = (cudaGraphExec_t)graph;
    return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count) {
    *count = (size_t)graph - 1;
    return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s) {
    START;
    enter();
    burn();
    note_thread(KERNELS);
    ADD(replays, 1);
    return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) { return cudaSuccess; }

/* ---- copies */

static cudaError_t copy(void *to, const void *from, size_t n, cudaStream_t s) {
    START;
    enter();
    int source = kind_of(from), target = kind_of(to);
    if (source != DEVICE && target == DEVICE) {
        if (source == PINNED) ADD(to_card_pinned, 1); else ADD(to_card_pageable, 1);
        ADD(to_card_bytes, n);
        note_thread(COPIES);
        if (!s) ADD(default_to_card, 1);
    } else if (source == DEVICE && target != DEVICE) {
        if (target == PINNED) ADD(from_card_pinned, 1); else ADD(from_card_pageable, 1);
        ADD(from_card_bytes, n);
        if (!s) ADD(default_from_card, 1);
    } else ADD(within_card, 1);
    if (captures(s)) {
        if (source != target && (!source || !target)) return spoil(); /* pageable memory */
        in_graph++;
    }
    memmove(to, from, n);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind k) { return copy(to, from, n, NULL); }
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind k, cudaStream_t s) {
    return copy(to, from, n, s);
}
cudaError_t cudaMemcpyPeerAsync(void *to, int a, const void *from, int b, size_t n, cudaStream_t s) {
    return copy(to, from, n, s);
}
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t pitch, size_t width, size_t height,
                              enum cudaMemcpyKind k, cudaStream_t s) {
    for (size_t row = 1; row < height; row++) memmove((char *)to + row * to_pitch, (char *)from + row * pitch, width);
    return copy(to, from, width, s); /* one copy, whose first row this is */
}
cudaError_t cudaMemset(void *p, int value, size_t n) { START; memset(p, value, n); return cudaSuccess; }
cudaError_t cudaMemsetAsync(void *p, int value, size_t n, cudaStream_t s) { return cudaMemset(p, value, n); }
cudaError_t cudaGetSymbolAddress(void **p, const void *symbol) {
    static char some[1 << 16];
    *p = some;
    return cudaSuccess;
}

/* ---- streams, events, and who waits for them */

static cudaError_t waits(long long *kind, int spoils) {
    START;
    if (spoils) return spoil();
    __atomic_add_fetch(kind, 1, __ATOMIC_RELAXED);
    note_thread(WAITS);
    return cudaSuccess;
}
static cudaError_t handle(void **made) {
    static size_t next = 16;
    START;
    enter();
    *made = (void *)__atomic_add_fetch(&next, 1, __ATOMIC_RELAXED);
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
    START;
    enter();
    return waits(&counters->device_syncs, capturing);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return waits(&counters->stream_syncs, captures(s)); }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { return waits(&counters->event_syncs, 0); }
cudaError_t cudaStreamQuery(cudaStream_t s) { START; return captures(s) ? spoil() : cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t *s) { return handle((void **)s); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f) { return handle((void **)s); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned f, int p) { return handle((void **)s); }
cudaError_t cudaStreamGetPriority(cudaStream_t s, int *p) { *p = 0; return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f) { START; return cudaSuccess; }
cudaError_t cudaStreamAddCallback(cudaStream_t s, cudaStreamCallback_t done, void *data, unsigned f) {
    START;
    done(s, cudaSuccess, data);
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t run, void *data) { START; run(data); return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *e) { return handle((void **)e); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f) { return handle((void **)e); }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { START; return cudaSuccess; }
cudaError_t cudaEventRecordWithFlags(cudaEvent_t e, cudaStream_t s, unsigned f) { START; return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t e) { START; return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) { START; *ms = 0.001f; return cudaSuccess; }

/* ---- kernels */

static cudaError_t launch(cudaStream_t s) {
    START;
    enter();
    if (captures(s)) { in_graph++; ADD(captured_launches, 1); }
    else { burn(); note_thread(KERNELS); ADD(launches, 1); }
    return cudaSuccess;
}
int null_launch(void) { return launch(capturing ? captured : NULL); } /* by a library, whose stream is in its handle */
cudaError_t cudaLaunchKernel(const void *f, dim3 g, dim3 b, void **a, size_t m, cudaStream_t s) { return launch(s); }
cudaError_t __cudaLaunchKernel(cudaKernel_t k, dim3 g, dim3 b, void **a, size_t m, cudaStream_t s) { return launch(s); }
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **a) { return launch(c->stream); }
cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 g, dim3 b, void **a, size_t m, cudaStream_t s) {
    return launch(s);
}
static __thread struct { dim3 grid, block; size_t shared; void *stream; } configured;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, struct CUstream_st *stream) {
    configured.grid = grid, configured.block = block, configured.shared = shared, configured.stream = stream;
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
    *grid = configured.grid, *block = configured.block, *shared = configured.shared;
    *(void **)stream = configured.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *f) { *kernel = (cudaKernel_t)f; return cudaSuccess; }
void **__cudaRegisterFatBinary(void *binary) { static void *handles[2]; return handles; }
char __cudaInitModule(void **handles) { return 1; }
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f) {
    START;
    memset(a, 0, sizeof *a);
    a->maxThreadsPerBlock = 1024, a->numRegs = 32, a->ptxVersion = a->binaryVersion = 90;
    a->maxDynamicSharedSizeBytes = 49152;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int b, size_t m, unsigned fl) {
    *n = 2;
    return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int b, size_t m) {
    *n = 2;
    return cudaSuccess;
}

/* ---- cards: made up, of the architecture of an H100 */

cudaError_t cudaGetDeviceCount(int *count) {
    cudaError_t error = start();
    *count = error ? 0 : cards;
    return error ? error : cards ? cudaSuccess : (last = cudaErrorNoDevice);
}
cudaError_t cudaGetDevice(int *card) { *card = current; return cudaSuccess; }
static cudaError_t is_there(int card) {
    return card >= 0 && card < cards ? cudaSuccess : (last = cudaErrorInvalidDevice);
}
cudaError_t cudaSetDevice(int card) {
    START;
    if (is_there(card)) return last;
    current = card;
    enter();
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int card) {
    START;
    if (is_there(card)) return last;
    *p = (struct cudaDeviceProp){
        .name = "Null Card", .totalGlobalMem = total, .major = 9, .multiProcessorCount = 132, .warpSize = 32,
        .maxThreadsPerBlock = 1024, .maxThreadsDim = {1024, 1024, 64}, .maxGridSize = {2147483647, 65535, 65535},
        .sharedMemPerBlock = 49152, .sharedMemPerBlockOptin = 232448, .sharedMemPerMultiprocessor = 233472,
        .regsPerBlock = 65536, .regsPerMultiprocessor = 65536, .maxThreadsPerMultiProcessor = 2048,
        .maxBlocksPerMultiProcessor = 32, .totalConstMem = 65536, .textureAlignment = 512, .l2CacheSize = 50 << 20,
        .canMapHostMemory = 1, .concurrentKernels = 1, .asyncEngineCount = 3, .unifiedAddressing = 1,
        .streamPrioritiesSupported = 1, .memoryPoolsSupported = 1, .cooperativeLaunch = 1,
    };
    p->uuid.bytes[3] = p->pciBusID = places[card] + 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int card) {
    struct cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceProperties(&p, card);
    if (error) return error;
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = p.sharedMemPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = p.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = p.sharedMemPerMultiprocessor; break;
    case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; break;
    default: *value = 1;
    }
    return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int card) {
    snprintf(text, size, "0000:%02x:00.0", places[card] + 1);
    return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most) { *least = 0, *most = -5; return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int *can, int a, int b) { *can = 0; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaGetLastError(void) {
    cudaError_t error = counters->broken ? (cudaError_t)counters->broken : last;
    last = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError(void) { return counters->broken ? (cudaError_t)counters->broken : last; }

#define ERRORS(X)                                                                            \
    X(cudaSuccess, "no error") X(cudaErrorMemoryAllocation, "out of memory")                 \
    X(cudaErrorInitializationError, "initialization error")                                  \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                               \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                      \
    X(cudaErrorAssert, "device-side assert triggered")                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                   \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing") \
    X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")
#define TEXT(name, text) case name: return text;
#define WORD(name, text) case name: return #name;
const char *cudaGetErrorString(cudaError_t error) { switch (error) { ERRORS(TEXT) default: return "another error"; } }
const char *cudaGetErrorName(cudaError_t error) { switch (error) { ERRORS(WORD) default: return "cudaErrorUnknown"; } }

/* ---- the driver's own functions, of which torch asks for some by name */

static int nothing(void) { return 0; }
int cuGetErrorString(int error, const char **text) { *text = cudaGetErrorString(error); return 0; }
int cuGetErrorName(int error, const char **text) { *text = cudaGetErrorName(error); return 0; }
int cuDevicePrimaryCtxGetState(int card, unsigned *flags, int *active) {
    *flags = 0, *active = cards > card && counters->contexts & bit_of(card) ? 1 : 0;
    return 0;
}
int cuCtxGetCurrent(void **context) { *context = (void *)8; return 0; }
int cuInit(unsigned flags) { return start(); }
int cuDeviceGetCount(int *count) { return cards < 0 ? cudaErrorInitializationError : cudaGetDeviceCount(count); }
cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **found, unsigned version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *result) {
    void *symbol = dlsym(RTLD_DEFAULT, name);
    *found = symbol ? symbol : (void *)nothing;
    if (result) *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* ---- cuBLAS */

int cublasCreate_v2(void **h) { return handle(h); }
int cublasLtCreate(void **h) { return handle(h); }
int cublasLtMatmulDescCreate(void **h, int compute, int type) { return handle(h); }
int cublasLtMatrixLayoutCreate(void **h, int type, unsigned long rows, unsigned long columns, long lead) {
    return handle(h);
}
int cublasLtMatmulPreferenceCreate(void **h) { return handle(h); }
int cublasGetMathMode(void *h, int *mode) { *mode = 0; return 0; }
int cublasGetPointerMode_v2(void *h, int *mode) { *mode = 0; return 0; }
size_t cublasLtGetVersion(void) { return 130100; }
typedef struct { unsigned long algorithm[8]; size_t workspace; int state; float waves; int reserved[4]; } Heuristic;
int cublasLtMatmulAlgoGetHeuristic(void *h, void *o, void *a, void *b, void *c, void *d, void *p, int asked,
                                   Heuristic *found, int *count) {
    memset(found, 0, sizeof *found);
    *count = 1;
    return 0;
}
int cublasLtMatmul(void *h) { return null_launch() != 0; }

/* ---- NVML: what all processes of the folder that still run have in use */

static long long in_use(int card, int *processes, int most, unsigned *pids, unsigned long long *sizes) {
    char path[4096];
    long long sum = 0, value;
    struct dirent *each;
    DIR *folder = opendir(getenv("NULL_CUDA_FOLDER"));
    *processes = 0;
    while (folder && (each = readdir(folder))) {
        int pid = atoi(each->d_name), file;
        if (pid <= 0 || kill(pid, 0)) continue;
        snprintf(path, sizeof path, "%s/%d", getenv("NULL_CUDA_FOLDER"), pid);
        if ((file = open(path, O_RDONLY | O_CLOEXEC)) < 0) continue;
        off_t at = PAGE + offsetof(Counters, card_0) + card * sizeof value;
        if (pread(file, &value, sizeof value, at) == sizeof value && value) {
            sum += value;
            if (*processes < most) pids[*processes] = pid, sizes[*processes] = value;
            ++*processes;
        }
        close(file);
    }
    if (folder) closedir(folder);
    return sum;
}
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } Process;
enum { INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7 };
static int card_of(void *device) { return (int)(size_t)device - 1; }
static int is_part(void *device) { return card_of(device) >= FIRST_PART && parts_of(0); }
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int error) { return error ? "an error" : "Success"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "580.0"); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = CUDART_VERSION; return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = count_in("NULL_CUDA_LISTED", 1); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    if ((int)index >= count_in("NULL_CUDA_LISTED", 1)) return INVALID_ARGUMENT;
    *device = (void *)(size_t)(index + 1);
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    int place = strncmp(uuid, "GPU-", 4) && strncmp(uuid, "MIG-", 4) ? -1 : place_of(uuid, count_in("NULL_CUDA_LISTED", 1));
    if (place < 0) return NOT_FOUND;
    *device = (void *)(size_t)(place + 1);
    return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    unsigned domain, number;
    if (sscanf(bus, "%x:%x:", &domain, &number) != 2) return INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(number - 1, device) ? NOT_FOUND : 0;
}
int nvmlDeviceGetIndex(void *device, unsigned *index) { *index = card_of(device); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
    int card = card_of(device), part = is_part(device);
    snprintf(text, size, "%s-%08x-0000-0000-0000-000000000000", part ? "MIG" : "GPU", card + 1 - part * FIRST_PART);
    return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
    snprintf(text, size, is_part(device) ? "Null Card MIG" : "Null Card");
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, Memory *memory) {
    int processes;
    memory->total = memory_of(card_of(device));
    memory->used = in_use(card_of(device), &processes, 0, NULL, NULL);
    memory->free = memory->total - memory->used;
    return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void *device, Memory2 *memory) {
    Memory plain;
    nvmlDeviceGetMemoryInfo(device, &plain);
    memory->total = plain.total, memory->reserved = 0, memory->free = plain.free, memory->used = plain.used;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned rates[2]) {
    rates[0] = rates[1] = 0;
    return is_part(device) ? NOT_SUPPORTED : 0;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *next) {
    *now = *next = parts_of(card_of(device)) > 0;
    return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *count) { *count = CARDS - FIRST_PART; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **part) {
    if ((int)index >= parts_of(card_of(device))) return NOT_FOUND;
    *part = (void *)(size_t)(FIRST_PART + index + 1);
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) { *major = 9, *minor = 0; return 0; }
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *type) { return NOT_FOUND; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, void *bus) { return NOT_FOUND; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, Process *found) {
    unsigned pids[256], most = *count > 256 ? 256 : *count;
    unsigned long long sizes[256];
    int processes;
    in_use(card_of(device), &processes, most, pids, sizes);
    for (int i = 0; i < processes && i < (int)most; i++) found[i] = (Process){pids[i], sizes[i], ~0u, ~0u};
    *count = processes;
    return processes > (int)most ? TOO_SMALL : 0;
}
/* With the structure of the first version, as torch asks for it in an error about memory. */
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *found) { *count = 0; return 0; }
