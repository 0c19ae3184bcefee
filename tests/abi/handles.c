/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles as integers: a predefined handle keeps its constant's value, any other has one integer of
 * its own outside the zero page for as long as it lives, and the two conversions invert each other.
 */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>

static int failures = 0;

static void expect(const char* what, long long found, long long wanted) {
    if (found == wanted) return;
    printf("%s: %lld instead of %lld\n", what, found, wanted);
    ++failures;
}

static void listen(MPI_Comm* comm, int* code, ...) {
    (void)comm;
    (void)code;
}

#define PREDEFINED(kind, first, last)                                                     \
    for (int i = first; i <= last; ++i) {                                                 \
        expect("MPI_" #kind "_fromint", (long long)(intptr_t)MPI_##kind##_fromint(i), i); \
        expect("MPI_" #kind "_toint", MPI_##kind##_toint(MPI_##kind##_fromint(i)), i);    \
    }

#define OWN(kind, handle)                                                                       \
    expect(#kind " lies outside the zero page",                                                 \
           MPI_##kind##_toint(handle) < 0 || MPI_##kind##_toint(handle) > 4095, 1);             \
    expect(#kind " keeps its integer", MPI_##kind##_toint(handle), MPI_##kind##_toint(handle)); \
    expect(#kind " comes back", MPI_##kind##_fromint(MPI_##kind##_toint(handle)) == (handle), 1)

int main(int argc, char** argv) {
    MPI_Comm comm, other;
    MPI_Group group;
    MPI_Info info;
    MPI_Errhandler errhandler;
    MPI_Request request;
    int value = 0, got = 1;
    MPI_Init(&argc, &argv);
    PREDEFINED(Op, 0x20, 0x24)
    PREDEFINED(Op, 0x28, 0x2a)
    PREDEFINED(Op, 0x30, 0x32)
    PREDEFINED(Comm, 0x100, 0x102)
    PREDEFINED(Group, 0x108, 0x109)
    PREDEFINED(Win, 0x110, 0x110)
    PREDEFINED(File, 0x118, 0x118)
    PREDEFINED(Session, 0x120, 0x120)
    PREDEFINED(Message, 0x128, 0x129)
    PREDEFINED(Info, 0x130, 0x131)
    PREDEFINED(Errhandler, 0x140, 0x143)
    PREDEFINED(Request, 0x180, 0x180)
    PREDEFINED(Type, 0x200, 0x203)
    PREDEFINED(Type, 0x207, 0x210)
    PREDEFINED(Type, 0x2c0, 0x2c1)

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_group(comm, &group);
    MPI_Info_create(&info);
    MPI_Comm_create_errhandler(listen, &errhandler);
    MPI_Irecv(&got, 1, MPI_INT, 0, 1, comm, &request);
    OWN(Comm, comm);
    OWN(Comm, other);
    OWN(Group, group);
    OWN(Info, info);
    OWN(Errhandler, errhandler);
    OWN(Request, request);
    expect("two communicators have two integers", MPI_Comm_toint(comm) != MPI_Comm_toint(other), 1);
    MPI_Send(&value, 1, MPI_INT, 0, 1, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect("what was received", got, 0);

    int stale = MPI_Comm_toint(other);
    MPI_Comm_free(&other);
    expect("a freed communicator has no integer", MPI_Comm_fromint(stale) == MPI_COMM_NULL, 1);
    MPI_Errhandler_free(&errhandler);
    MPI_Info_free(&info);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    if (failures == 0) printf("handles and integers are one to one\n");
    return failures != 0;
}
