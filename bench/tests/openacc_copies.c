/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an OpenACC program gives to MPI, without kernels: memory of acc_malloc, an array of `enter data` inside of host_data, and
 * a struct of deviceptr. Every byte goes round a ring and is compared on the host. Exit status 77: OpenACC sees no NVIDIA device. */
#include <mpi.h>
#include <openacc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 70001 };

static unsigned char value(int rank, int i) {
    return (unsigned char)(37 * rank + 11 * i + i / 251 + 1);
}

static int wrong(const unsigned char* got, int from, const char* what) {
    for (int i = 0; i < COUNT; ++i)
        if (got[i] != value(from, i)) {
            fprintf(stderr, "%s: byte %d is %d, not %d\n", what, i, got[i], value(from, i));
            return 1;
        }
    return 0;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (acc_get_num_devices(acc_device_nvidia) == 0) {
        MPI_Finalize();
        return 77;
    }
    acc_set_device_num(rank % acc_get_num_devices(acc_device_nvidia), acc_device_nvidia);
    const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    unsigned char* host = malloc(COUNT);
    for (int i = 0; i < COUNT; ++i)
        host[i] = value(rank, i);

    unsigned char *out = acc_malloc(COUNT), *in = acc_malloc(COUNT);
    acc_memcpy_to_device(out, host, COUNT);
    MPI_Sendrecv(out, COUNT, MPI_BYTE, to, 1, in, COUNT, MPI_BYTE, from, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    unsigned char* got = calloc(COUNT, 1);
    acc_memcpy_from_device(got, in, COUNT);
    int bad = wrong(got, from, "acc_malloc");

    memset(got, 0, COUNT);
#pragma acc enter data copyin(host [0:COUNT], got [0:COUNT])
    bad += acc_deviceptr(host) == host ||
           acc_deviceptr(got) == got; /* it is not the host's memory that travels */
#pragma acc host_data use_device(host, got)
    MPI_Sendrecv(host, COUNT, MPI_BYTE, to, 2, got, COUNT, MPI_BYTE, from, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
#pragma acc update self(got [0:COUNT])
    bad += wrong(got, from, "host_data");
#pragma acc exit data delete (host [0:COUNT], got [0:COUNT])

    acc_free(out);
    acc_free(in);
    MPI_Allreduce(MPI_IN_PLACE, &bad, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d wrong\n", bad);
    MPI_Finalize();
    return bad != 0;
}
