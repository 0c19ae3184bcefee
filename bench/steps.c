/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The steps of a program on GPUs, one by one: a kernel that writes what is sent and checks what came in the step
 * before, a wait for it, and an exchange with the neighbors or a collective. The time of step 1, 2, 3 ... shows
 * what each first use costs; the sums over the first 5, 20, 100 and 400 are what a short program pays.
 *
 *   steps [exchange|allreduce|alltoall|none] [--wait stream|device|default] [--fresh] [--overlap] [--visible all|one]
 *         [--compute MICROSECONDS] [--steps N] [--curve] BYTES...
 *
 * exchange: MPI_Isend to the next rank, MPI_Irecv from the one before, MPI_Waitall. --wait: for the kernel, by
 * cuStreamSynchronize of a stream of its own, by cuCtxSynchronize, or on the default stream. --fresh: buffers are
 * allocated and freed within each step. --overlap: another kernel, of --compute microseconds, runs meanwhile.
 * --visible one: CUDA_VISIBLE_DEVICES is set to one GPU for each rank, from the launcher's local rank, before
 * anything looks at it; all: it is removed.
 *
 * A time is that of the slowest rank, from the launch of the kernel (with --fresh: from the allocation) to the end of
 * the step. Not timed: the kernel's own first launches, as 50 steps without messages go before the first size;
 * they also give "alone". Between steps there is no barrier. Prints one line of JSON for each number of bytes.
 *
 * Standard MPI, and the CUDA driver by dlopen: one binary runs on each library with the MPI 5.0 ABI. */
#include "steps_kernel.h"

#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long Address; /* of the driver: CUdeviceptr */
enum Operation { kExchange, kAllreduce, kAlltoall, kNone, kOperations };
enum Wait { kStream, kDevice, kDefault, kWaits };
static const char* const kOperationNames[] = {"exchange", "allreduce", "alltoall", "none"};
static const char* const kWaitNames[] = {"stream", "device", "default"};
enum { kMostSizes = 32, kAloneSteps = 50, kThreads = 256, kMostBlocks = 264, kMostRanks = 64 };
static const int kSums[] = {1, 5, 20, 100, 400};

/* The driver's calls, by their exact symbols. */
static struct {
    int (*init)(unsigned);
    int (*device_count)(int*);
    int (*retain)(void**, int);
    int (*set_current)(void*);
    int (*allocate)(Address*, size_t);
    int (*release)(Address);
    int (*fill)(Address, unsigned, size_t);
    int (*to_host)(void*, Address, size_t);
    int (*load)(void**, const void*);
    int (*function)(void**, void*, const char*);
    int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void*, void**, void**);
    int (*make_stream)(void**, unsigned);
    int (*wait_stream)(void*);
    int (*wait_device)(void);
} cuda;

static struct {
    enum Operation operation;
    enum Wait wait;
    int fresh, overlap, curve, steps, sizes;
    double compute_us;
    const char* visible;
    size_t bytes[kMostSizes];
} options = {.steps = 400, .visible = "as they are"};

static int rank, ranks, gpus;
static void *kernel, *stream;
static Address wrong; /* how many words were not what was sent: on the device */

static void give_up(const char* what, int code) {
    fprintf(stderr, "steps: %s (%d)\n", what, code);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void check(int result, const char* call) {
    if (result != 0) give_up(call, result);
}

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int position(const char* word, const char* const* names, int count) {
    for (int i = 0; i < count; ++i)
        if (strcmp(word, names[i]) == 0) return i;
    return -1;
}

static size_t bytes_of(const char* word) {
    char* rest;
    const size_t number = strtoull(word, &rest, 10);
    return number << (*rest == 'K' ? 10 : *rest == 'M' ? 20 : *rest == 'G' ? 30 : 0);
}

static int understand(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        const char* const word = argv[i];
        const char* const next = i + 1 < argc ? argv[i + 1] : "";
        const int operation = position(word, kOperationNames, kOperations);
        if (operation >= 0) {
            options.operation = (enum Operation)operation;
        } else if (strcmp(word, "--fresh") == 0) {
            options.fresh = 1;
        } else if (strcmp(word, "--overlap") == 0) {
            options.overlap = 1;
        } else if (strcmp(word, "--curve") == 0) {
            options.curve = 1;
        } else if (strcmp(word, "--wait") == 0 && position(next, kWaitNames, kWaits) >= 0) {
            options.wait = (enum Wait)position(argv[++i], kWaitNames, kWaits);
        } else if (strcmp(word, "--visible") == 0 &&
                   (strcmp(next, "all") == 0 || strcmp(next, "one") == 0)) {
            options.visible = argv[++i];
        } else if (strcmp(word, "--compute") == 0 && atof(next) >= 0) {
            options.compute_us = atof(argv[++i]);
        } else if (strcmp(word, "--steps") == 0 && atoi(next) > 0) {
            options.steps = atoi(argv[++i]);
        } else if (bytes_of(word) >= 8 && options.sizes < kMostSizes) {
            options.bytes[options.sizes++] = bytes_of(word) / 8 * 8;
        } else {
            fprintf(stderr,
                    "steps: %s is not understood; the head of bench/steps.c has the options\n",
                    word);
            return 0;
        }
    }
    if (options.sizes == 0) options.bytes[options.sizes++] = 8;
    return 1;
}

/* The launcher's word for "which rank of this machine am I?": known before MPI_Init. */
static const char* local_rank(void) {
    static const char* const names[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "SLURM_LOCALID", "LOCAL_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (getenv(names[i]) != NULL) return getenv(names[i]);
    return "0";
}

static void start_gpu(void) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (driver == NULL) give_up("there is no CUDA driver (libcuda.so.1)", 0);
    const struct {
        void* to;
        const char* symbol;
    } calls[] = {{&cuda.init, "cuInit"},
                 {&cuda.device_count, "cuDeviceGetCount"},
                 {&cuda.retain, "cuDevicePrimaryCtxRetain"},
                 {&cuda.set_current, "cuCtxSetCurrent"},
                 {&cuda.allocate, "cuMemAlloc_v2"},
                 {&cuda.release, "cuMemFree_v2"},
                 {&cuda.fill, "cuMemsetD32_v2"},
                 {&cuda.to_host, "cuMemcpyDtoH_v2"},
                 {&cuda.load, "cuModuleLoadData"},
                 {&cuda.function, "cuModuleGetFunction"},
                 {&cuda.launch, "cuLaunchKernel"},
                 {&cuda.make_stream, "cuStreamCreate"},
                 {&cuda.wait_stream, "cuStreamSynchronize"},
                 {&cuda.wait_device, "cuCtxSynchronize"}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
        void* const found = dlsym(driver, calls[i].symbol);
        if (found == NULL) give_up(calls[i].symbol, 0);
        memcpy(calls[i].to, &found, sizeof found);
    }
    void *context, *module;
    check(cuda.init(0), "cuInit");
    check(cuda.device_count(&gpus), "cuDeviceGetCount");
    if (gpus == 0) give_up("no GPU is visible", 0);
    check(cuda.retain(&context, atoi(local_rank()) % gpus), "cuDevicePrimaryCtxRetain");
    check(cuda.set_current(context), "cuCtxSetCurrent");
    check(cuda.load(&module, kStepsPtx), "cuModuleLoadData");
    check(cuda.function(&kernel, module, STEPS_KERNEL), "cuModuleGetFunction");
    if (options.wait != kDefault) check(cuda.make_stream(&stream, 0), "cuStreamCreate");
    check(cuda.allocate(&wrong, sizeof(int)), "cuMemAlloc");
    check(cuda.fill(wrong, 0, 1), "cuMemsetD32");
}

/* What a rank sends in a step: another number in each of them, so that old bytes are seen. */
static int32_t value_of(int of_rank, int step) {
    return 1 + of_rank + kMostRanks * step;
}

/* Word i of what comes in a step is expected + i / block. */
struct Expected {
    int32_t first;
    Address block;
};

static struct Expected expected_in(int step, size_t bytes) {
    const Address words = bytes / sizeof(int32_t);
    struct Expected expected = {value_of((rank + ranks - 1) % ranks, step), words};
    if (options.operation == kAllreduce) {
        expected.first = 0;
        for (int of_rank = 0; of_rank < ranks; ++of_rank)
            expected.first += value_of(of_rank, step);
    } else if (options.operation == kAlltoall) {
        expected = (struct Expected){value_of(0, step), words / (Address)ranks};
    }
    return expected;
}

static void launch(Address sent, Address received, Address words, int32_t value,
                   struct Expected expected) {
    Address nanoseconds = (Address)(options.compute_us * 1e3);
    Address blocks = (words + kThreads - 1) / kThreads;
    blocks = blocks < 1 ? 1 : blocks > kMostBlocks ? kMostBlocks : blocks;
    void* parameters[] = {&sent,           &received,    &wrong, &words,
                          &expected.block, &nanoseconds, &value, &expected.first};
    check(cuda.launch(kernel, (unsigned)blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, NULL),
          "cuLaunchKernel");
}

static void wait_for_kernel(void) {
    if (options.wait == kDevice)
        check(cuda.wait_device(), "cuCtxSynchronize");
    else
        check(cuda.wait_stream(stream), "cuStreamSynchronize");
}

static int begin(enum Operation operation, Address sent, Address received, size_t bytes,
                 MPI_Request* requests) {
    void *const from = (void*)(uintptr_t)sent, *const to = (void*)(uintptr_t)received;
    const int words = (int)(bytes / sizeof(int32_t));
    if (operation == kExchange) {
        MPI_Irecv(to, words, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(from, words, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &requests[1]);
        return 2;
    }
    if (operation == kAllreduce)
        MPI_Allreduce(from, to, words, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    else if (operation == kAlltoall)
        MPI_Alltoall(from, words / ranks, MPI_INT, to, words / ranks, MPI_INT, MPI_COMM_WORLD);
    return 0;
}

static void allocate(Address* sent, Address* received, size_t bytes) {
    check(cuda.allocate(sent, bytes), "cuMemAlloc");
    check(cuda.allocate(received, bytes), "cuMemAlloc");
}

static void release(Address sent, Address received) {
    check(cuda.release(sent), "cuMemFree");
    check(cuda.release(received), "cuMemFree");
}

/* Steps of `bytes`; `us` gets the time of each. */
static void run(enum Operation operation, size_t bytes, int steps, double* us) {
    const Address words = bytes / sizeof(int32_t);
    const struct Expected nothing = {0, words};
    Address sent = 0, received = 0;
    MPI_Request requests[2];
    if (!options.fresh) allocate(&sent, &received, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int step = 0; step < steps; ++step) {
        const int came_before = operation != kNone && !options.fresh && step > 0;
        const double start = now_us();
        if (options.fresh) allocate(&sent, &received, bytes);
        launch(sent, came_before ? received : 0, words, value_of(rank, step),
               came_before ? expected_in(step - 1, bytes) : nothing);
        wait_for_kernel();
        if (options.overlap) launch(0, 0, 0, 0, nothing);
        const int open = begin(operation, sent, received, bytes, requests);
        if (open > 0) MPI_Waitall(open, requests, MPI_STATUSES_IGNORE);
        if (options.overlap) wait_for_kernel();
        const double until_check = now_us();
        if (operation != kNone && (options.fresh || step == steps - 1)) {
            /* No further step looks at these: the kernel does, outside of the time. */
            launch(received, received, words, 0, expected_in(step, bytes));
            wait_for_kernel();
        }
        const double checked = now_us();
        if (options.fresh) release(sent, received);
        us[step] = now_us() - start - (checked - until_check);
    }
    if (!options.fresh) release(sent, received);
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

/* Of the second half, where nothing is used for the first time. */
static double steady_median(const double* us, int steps) {
    const int first = steps / 2, count = steps - first;
    double* const sorted = malloc(sizeof *sorted * (size_t)count);
    if (sorted == NULL) give_up("no memory for the times", 0);
    memcpy(sorted, us + first, sizeof *sorted * (size_t)count);
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    const double median = sorted[count / 2];
    free(sorted);
    return median;
}

static void print(size_t bytes, int place, const double* us, const double* alone) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n\"\\")] = 0;
    printf(
        "{\"program\": \"steps\", \"library\": \"%s\", \"ranks\": %d, \"visible\": \"%s\", "
        "\"gpus\": %d, "
        "\"operation\": \"%s\", \"wait\": \"%s\", \"buffers\": \"%s\", \"overlap\": %s, "
        "\"compute_us\": %g, "
        "\"bytes\": %zu, \"place_in_job\": %d, \"steps\": %d",
        library, ranks, options.visible, gpus, kOperationNames[options.operation],
        kWaitNames[options.wait], options.fresh ? "fresh" : "kept",
        options.overlap ? "true" : "false", options.compute_us, bytes, place, options.steps);
    double sum = 0;
    for (int step = 0, i = 0; step < options.steps && i < (int)(sizeof kSums / sizeof *kSums);
         ++step) {
        sum += us[step];
        if (step + 1 == kSums[i]) printf(", \"first_%d_us\": %.1f", kSums[i++], sum);
    }
    const double median = steady_median(us, options.steps);
    const double kernel_alone = steady_median(alone, kAloneSteps);
    printf(", \"median_us\": %.2f, \"alone_us\": %.2f, \"beyond_us\": %.2f", median, kernel_alone,
           median - kernel_alone);
    for (int step = 0; step < options.steps && (options.curve || step < 12); ++step)
        printf("%s%.1f", step == 0 ? ", \"curve_us\": [" : ", ", us[step]);
    printf("]}\n");
    fflush(stdout);
}

int main(int argc, char** argv) {
    if (!understand(argc, argv)) return 2;
    if (strcmp(options.visible, "one") == 0) setenv("CUDA_VISIBLE_DEVICES", local_rank(), 1);
    if (strcmp(options.visible, "all") == 0) unsetenv("CUDA_VISIBLE_DEVICES");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > kMostRanks) give_up("more than 64 ranks", ranks);
    start_gpu();
    double* const mine = calloc((size_t)options.steps + kAloneSteps, sizeof *mine);
    double* const us = calloc((size_t)options.steps, sizeof *us);
    double alone[kAloneSteps];
    if (mine == NULL || us == NULL) give_up("no memory for the times", 0);
    int total = 0;
    for (int i = 0; i < options.sizes; ++i) {
        size_t bytes = options.bytes[i];
        if (options.operation ==
            kAlltoall) /* a word at least for each rank, and as many for each */
            bytes = (bytes + 4 * (size_t)ranks - 1) / (4 * (size_t)ranks) * 4 * (size_t)ranks;
        run(kNone, bytes, kAloneSteps, mine);
        MPI_Allreduce(mine, alone, kAloneSteps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        run(options.operation, bytes, options.steps, mine);
        MPI_Allreduce(mine, us, options.steps, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        int here = 0;
        check(cuda.to_host(&here, wrong, sizeof here), "cuMemcpyDtoH");
        MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        total = here;
        if (total != 0) give_up("words that are not what was sent", total);
        if (rank == 0) print(bytes, i, us, alone);
    }
    free(mine);
    free(us);
    MPI_Finalize();
    return 0;
}
