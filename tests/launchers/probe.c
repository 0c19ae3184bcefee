/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One program for every launcher, plain MPI; `run` compiles it with our mpicc. Its argument says
 * what it does: hello   each rank says who it is; rank 0 prints how many have ring    a number goes
 * round and every rank adds to it device  rank 0 sends 1 MiB of device memory to the last rank,
 * which looks at it (libcuda.so.1, simulated or real) abort   rank 1 calls MPI_Abort with code 7
 * while the others wait for it dead    rank 1 kills itself while the others wait for it kept    rank 1
 * ends, and the others, which the launcher lets live, hear of it, end MPI and live on spawn   all
 * ranks spawn two processes and add up numbers with them, or are told why not connect the last rank
 * connects to rank 0 by a name that this one has published, or by its port What went well ends with
 * a line "good: ..." from one rank. */
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void hello(void) {
    int* all = calloc((size_t)size, sizeof *all);
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    int right = 0;
    if (rank == 0)
        for (int i = 0; i < size; ++i)
            right += all[i] == i;
    if (rank == 0 && right == size) printf("good: %d ranks said hello\n", size);
    free(all);
}

static void ring(void) {
    long sum = 0;
    if (rank > 0) MPI_Recv(&sum, 1, MPI_LONG, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += rank + 1;
    MPI_Send(&sum, 1, MPI_LONG, (rank + 1) % size, 5, MPI_COMM_WORLD);
    if (rank > 0) return;
    MPI_Recv(&sum, 1, MPI_LONG, size - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sum == (long)size * (size + 1) / 2) printf("good: the ring brought %ld\n", sum);
}

typedef unsigned long long address;
enum { bytes = 1 << 20 };

static int device(void) {
    void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (cuda == NULL) return printf("no libcuda.so.1: %s\n", dlerror()), 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
    int (*retain)(void**, int) = (int (*)(void**, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
    int (*current)(void*) = (int (*)(void*))dlsym(cuda, "cuCtxSetCurrent");
    int (*allocate)(address*, size_t) = (int (*)(address*, size_t))dlsym(cuda, "cuMemAlloc_v2");
    int (*fill)(address, unsigned char, size_t) =
        (int (*)(address, unsigned char, size_t))dlsym(cuda, "cuMemsetD8_v2");
    int (*fetch)(void*, address, size_t) =
        (int (*)(void*, address, size_t))dlsym(cuda, "cuMemcpyDtoH_v2");
    int (*settle)(void) = (int (*)(void))dlsym(cuda, "cuCtxSynchronize");
    void* context = NULL;
    address memory = 0;
    if (init(0) || retain(&context, 0) || current(context) || allocate(&memory, bytes))
        return printf("no GPU\n"), 1;
    if (fill(memory, rank == 0 ? 0x5a : 0, bytes) || settle()) return printf("no memset\n"), 1;
    if (rank == 0) MPI_Send((void*)(size_t)memory, bytes, MPI_BYTE, size - 1, 6, MPI_COMM_WORLD);
    if (rank != size - 1) return 0;
    MPI_Recv((void*)(size_t)memory, bytes, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char* host = malloc(bytes);
    if (host == NULL || fetch(host, memory, bytes)) return printf("no copy\n"), 1;
    size_t right = 0;
    for (size_t i = 0; i < bytes; ++i)
        right += host[i] == 0x5a;
    if (right == bytes) printf("good: 1 MiB of device memory arrived\n");
    free(host);
    return 0;
}

static const char* sentence(int code) {
    static char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

static int add_up(MPI_Comm inter) {
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
    MPI_Comm_disconnect(&inter);
    return sum;
}

enum { children = 2 };

static void spawn(char* program) {
    char* arguments[] = {"spawned", NULL};
    MPI_Comm inter;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Comm_spawn(program, arguments, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                              &inter, MPI_ERRCODES_IGNORE);
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    int sum = code == MPI_SUCCESS ? add_up(inter) : 0;
    if (rank > 0) return;
    if (sum == children && code == MPI_SUCCESS) printf("good: %d processes were spawned\n", sum);
    if (class == MPI_ERR_SPAWN) printf("good: refused: %s\n", sentence(code));
}

static void connect_by_name(void) {
    char name[64] = "", port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int published = 0;
    if (rank == 0) {
        snprintf(name, sizeof name, "probe-%d", getpid());
        MPI_Open_port(MPI_INFO_NULL, port);
        published = MPI_Publish_name(name, MPI_INFO_NULL, port);
    }
    MPI_Bcast(&published, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD);
    int right = 0;
    if (rank == 0) {
        if (MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter) == MPI_SUCCESS)
            right = add_up(inter) == 1;
        if (published == MPI_SUCCESS) MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    } else if (rank == size - 1) {
        int code = MPI_SUCCESS;
        if (published == MPI_SUCCESS) code = MPI_Lookup_name(name, MPI_INFO_NULL, found);
        if (code == MPI_SUCCESS && published == MPI_SUCCESS && strcmp(found, port) != 0)
            printf("NO: another port, %s, is known under the name\n", found);
        if (code == MPI_SUCCESS)
            code = MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        if (code == MPI_SUCCESS) add_up(inter);
        if (code != MPI_SUCCESS) printf("NO: %s\n", sentence(code));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (right && published == MPI_SUCCESS) printf("good: connected by a name\n");
    if (right && published != MPI_SUCCESS)
        printf("good: by a port; no names: %s\n", sentence(published));
}

static void wait_for_rank_1(void) {
    int never;
    MPI_Recv(&never, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* What the others print is not shown by every launcher, so they leave a file. */
static void live_on(void) {
    int never, why = MPI_SUCCESS;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Send(NULL, 0, MPI_INT, 1, 8, MPI_COMM_WORLD);
    int code = MPI_Recv(&never, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &why);
    MPI_Finalize();
    usleep(200000u * (unsigned)rank); /* while the others end */
    char name[4096];
    snprintf(name, sizeof name, "%s/%d", getenv("PROBE_FOLDER"), rank);
    FILE* file = fopen(name, "w");
    if (file == NULL) return;
    fputs(why == MPI_ERR_PROC_ABORTED ? "heard" : "not heard", file);
    fclose(file);
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "hello";
    int failed = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "spawned") == 0) {
        MPI_Comm parent;
        MPI_Comm_get_parent(&parent);
        if (parent != MPI_COMM_NULL) add_up(parent);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(what, "spawn") == 0) spawn(argv[0]);
    if (strcmp(what, "connect") == 0) connect_by_name();
    if (strcmp(what, "hello") == 0) hello();
    if (strcmp(what, "ring") == 0) ring();
    if (strcmp(what, "device") == 0) failed = device();
    if (strcmp(what, "abort") == 0) {
        if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
        wait_for_rank_1();
    }
    if (strcmp(what, "dead") == 0) {
        if (rank == 1) raise(SIGKILL);
        wait_for_rank_1();
    }
    if (strcmp(what, "kept") == 0) {
        if (rank != 1) return live_on(), 0;
        for (int other = 1; other < size; ++other) /* they are through the barrier */
            MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        _exit(3);
    }
    MPI_Finalize();
    return failed;
}
