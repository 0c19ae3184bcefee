/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A fault that benchmarks must show, preloaded between gantry-bench and its MPI: PLANTED=byte changes a byte of what
 * arrives, PLANTED=between one that lies between rows of 16 bytes, PLANTED=op takes the minimum where an allreduce asks
 * for something else, PLANTED=delay makes each call last five milliseconds longer. Host memory alone. */
#define _GNU_SOURCE
#include <mpi.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int plants(const char* what) {
    const char* planted = getenv("PLANTED");
    return planted != NULL && strcmp(planted, what) == 0;
}

static void late(void) {
    const struct timespec time = {0, 5000000};
    if (plants("delay")) nanosleep(&time, NULL);
}

static void spoil(const void* buffer) {
    if (buffer == NULL || buffer == MPI_IN_PLACE) return;
    if (plants("byte")) *(unsigned char*)buffer ^= 0x40;
    if (plants("between")) ((unsigned char*)buffer)[16] = 0x40;
}

/* --- messages: what was posted last is spoilt when it has come; what arrives in the last moment of a fan is as wrong */
static void* posted;

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
    if (count > 0) posted = buffer;
    return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
    late();
    const int code = PMPI_Waitall(count, requests, statuses);
    spoil(posted);
    return code;
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    late();
    const int code = PMPI_Wait(request, status);
    spoil(posted);
    return code;
}
int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status* status) {
    const int code = PMPI_Recv(buffer, count, type, from, tag, comm, status);
    late();
    if (count > 0) spoil(buffer);
    return code;
}
int MPI_Sendrecv(const void* out, int outs, MPI_Datatype out_type, int to, int out_tag, void* in,
                 int ins, MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm,
                 MPI_Status* status) {
    late();
    const int code = PMPI_Sendrecv(out, outs, out_type, to, out_tag, in, ins, in_type, from, in_tag,
                                   comm, status);
    if (ins > 0) spoil(in);
    return code;
}

/* --- one-sided: what leaves is spoilt in a copy, what is fetched behind the synchronisation */
static char* copy_of(const void* origin, size_t bytes) {
    static char* copy;
    copy = realloc(copy, bytes);
    memcpy(copy, origin, bytes);
    spoil(copy);
    return copy;
}
static size_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    PMPI_Type_size(type, &size);
    return (size_t)count * (size_t)size;
}
static void* fetched;

int MPI_Put(const void* origin, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
            MPI_Datatype as, MPI_Win win) {
    const int code = PMPI_Put(plants("byte") ? copy_of(origin, bytes_of(count, type)) : origin,
                              count, type, target, at, there, as, win);
    late();
    return code;
}
int MPI_Accumulate(const void* origin, int count, MPI_Datatype type, int target, MPI_Aint at,
                   int there, MPI_Datatype as, MPI_Op op, MPI_Win win) {
    const int code =
        PMPI_Accumulate(plants("byte") ? copy_of(origin, bytes_of(count, type)) : origin, count,
                        type, target, at, there, as, op, win);
    late();
    return code;
}
int MPI_Get(void* origin, int count, MPI_Datatype type, int target, MPI_Aint at, int there,
            MPI_Datatype as, MPI_Win win) {
    fetched = origin;
    late();
    return PMPI_Get(origin, count, type, target, at, there, as, win);
}
int MPI_Fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint at,
                     MPI_Op op, MPI_Win win) {
    fetched = result;
    late();
    return PMPI_Fetch_and_op(origin, result, type, target, at, op, win);
}
int MPI_Compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type,
                         int target, MPI_Aint at, MPI_Win win) {
    fetched = result;
    late();
    return PMPI_Compare_and_swap(origin, compare, result, type, target, at, win);
}
int MPI_Win_flush(int rank, MPI_Win win) {
    const int code = PMPI_Win_flush(rank, win);
    spoil(fetched);
    return code;
}

/* --- collectives: CALL(name, what arrives, parameters, arguments) */
#define CALL(name, arrives, parameters, arguments) \
    int MPI_##name parameters {                    \
        late();                                    \
        const int code = PMPI_##name arguments;    \
        spoil(arrives);                            \
        return code;                               \
    }
#define BLOCKS                                                                                  \
    (const void* out, int outs, MPI_Datatype out_type, void* in, int ins, MPI_Datatype in_type, \
     MPI_Comm comm)
#define BLOCKS_OF_ROOT                                                                          \
    (const void* out, int outs, MPI_Datatype out_type, void* in, int ins, MPI_Datatype in_type, \
     int root, MPI_Comm comm)
#define REDUCED (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
CALL(Allgather, in, BLOCKS, (out, outs, out_type, in, ins, in_type, comm))
CALL(Alltoall, in, BLOCKS, (out, outs, out_type, in, ins, in_type, comm))
CALL(Neighbor_allgather, in, BLOCKS, (out, outs, out_type, in, ins, in_type, comm))
CALL(Neighbor_alltoall, in, BLOCKS, (out, outs, out_type, in, ins, in_type, comm))
CALL(Gather, in, BLOCKS_OF_ROOT, (out, outs, out_type, in, ins, in_type, root, comm))
CALL(Scatter, in, BLOCKS_OF_ROOT, (out, outs, out_type, in, ins, in_type, root, comm))
CALL(Reduce_scatter_block, in, REDUCED, (out, in, count, type, op, comm))
CALL(Scan, in, REDUCED, (out, in, count, type, op, comm))
CALL(Exscan, in, REDUCED, (out, in, count, type, op, comm))
CALL(Reduce, in,
     (const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     (out, in, count, type, op, root, comm))
/* Those that the program itself uses between ranks are spoilt where they are of many numbers. */
int MPI_Allreduce REDUCED {
    if (count > 1) late();
    const int wrong = count > 1 && plants("op");
    const int code = PMPI_Allreduce(out, in, count, type, wrong ? MPI_MIN : op, comm);
    if (count > 1) spoil(in);
    return code;
}
int MPI_Bcast(void* in, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    if (count > 1) late();
    const int code = PMPI_Bcast(in, count, type, root, comm);
    if (count > 1) spoil(in);
    return code;
}
