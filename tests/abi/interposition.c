/* SPDX-License-Identifier: BSD-3-Clause */
/* A profiling layer in the program: our MPI_x replace the library's weak ones, the originals answer
 * as PMPI_x, and the library itself never goes through the public names (a collective is not seen
 * as sends). */
#include <mpi.h>

#include <stdio.h>

static int seen_size = 0, seen_send = 0, seen_others = 0;

int MPI_Comm_size(MPI_Comm comm, int* size) {
    ++seen_size;
    return PMPI_Comm_size(comm, size);
}
int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
    ++seen_send;
    return PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
}
int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    ++seen_others;
    return PMPI_Send(buf, count, datatype, dest, tag, comm);
}
int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
    ++seen_others;
    return PMPI_Recv(buf, count, datatype, source, tag, comm, status);
}
int MPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
    ++seen_others;
    return PMPI_Irecv(buf, count, datatype, source, tag, comm, request);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    ++seen_others;
    return PMPI_Wait(request, status);
}
int MPI_Barrier(MPI_Comm comm) {
    ++seen_others;
    return PMPI_Barrier(comm);
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
    ++seen_others;
    return PMPI_Bcast(buffer, count, datatype, root, comm);
}
int MPI_Comm_rank(MPI_Comm comm, int* rank) {
    ++seen_others;
    return PMPI_Comm_rank(comm, rank);
}

int main(int argc, char** argv) {
    int size = 0, value = 3, got = 0, sum = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_SELF, &size);
    MPI_Isend(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
    PMPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_free(&copy);
    MPI_Finalize();
    if (size != 1 || got != 3 || seen_size != 1 || seen_send != 1 || seen_others != 0) {
        printf("size %d got %d, Comm_size seen %d times, Isend %d, others %d\n", size, got,
               seen_size, seen_send, seen_others);
        return 1;
    }
    printf("each call was seen once, the library's own work not at all\n");
    return 0;
}
