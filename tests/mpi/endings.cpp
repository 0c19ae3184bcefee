// SPDX-License-Identifier: BSD-3-Clause
//
// Programs whose job must end, each in its way: by the default error handlers, by MPI_Abort, by the death of a
// rank. endings_test.py runs them and looks at the exit code, at what is said and at what is left. Who comes
// back from its last call says so.
#include "gpu.hpp"
#include "spawning.hpp"
#include "test.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace mpi_tests;

MPI_CASE_ENDING(ending_by_a_bad_rank, 2) {
    int value = 0;
    if (rank() == 1) MPI_Send(&value, 1, MPI_INT, 33, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_by_a_mistake_that_has_no_communicator, 2) {
    MPI_Datatype type;
    if (rank() == 1) MPI_Type_contiguous(-2, MPI_INT, &type);
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_after_printing, 1) {
    int value = 0;
    std::printf("the last words");  // in a pipe they wait for more
    MPI_Send(&value, 1, MPI_INT, 33, 0, MPI_COMM_WORLD);
}

MPI_CASE_ENDING(ending_by_errors_abort, 2) {
    int value = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
    if (rank() == 0) MPI_Send(&value, -2, MPI_INT, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_by_abort, 3) {
    if (rank() == 2) MPI_Abort(MPI_COMM_WORLD, 42);
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_by_a_killed_rank, 3) {
    // The others wait inside a large message from it.
    std::vector<char> large(std::size_t{64} << 20);
    if (rank() == 0) {
        MPI_Request request;
        MPI_Isend(large.data(), static_cast<int>(large.size()), MPI_CHAR, 1, 0, MPI_COMM_WORLD,
                  &request);
        kill(getpid(), SIGKILL);
    }
    MPI_Recv(large.data(), static_cast<int>(large.size()), MPI_CHAR, 0, 0, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_by_a_segmentation_fault, 2) {
    if (rank() == 1) {
        signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler of its own
        volatile std::uintptr_t nowhere = 16;
        *reinterpret_cast<volatile int*>(nowhere) = 1;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_by_leaving_without_finalize, 2) {
    if (rank() == 1) std::_Exit(0);
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_after_all_used_one_gpu, 2) {
    use_device(0);
    Memory buffer(Kind::device, 1024, 0);
    if (rank() == 0) OK(MPI_Send(buffer.data(), 1024, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
    if (rank() == 1)
        OK(MPI_Recv(buffer.data(), 1024, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

MPI_CASE_ENDING(ending_with_a_session_open, 2) {
    if (rank() == 1) {
        MPI_Session session;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        MPI_Finalize();
        std::exit(0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::printf("came back\n");
}

MPI_CASE_ENDING(ending_by_a_child_without_mpi, 1) {
    MPI_Comm down = MPI_COMM_NULL;
    MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &down,
                   MPI_ERRCODES_IGNORE);
    std::printf("came back\n");
}

MPI_CASE_CHILD(child_aborts, 2) {
    if (rank() == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(parent());
}

MPI_CASE_ENDING(ending_by_a_child_that_aborts, 2) {
    MPI_Comm down = spawn_case("child_aborts", 2);
    MPI_Barrier(down);
    std::printf("came back\n");
}
