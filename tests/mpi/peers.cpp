// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank does while somebody breaks its network or kills its peer: tests/net/faults_test.py
// runs this case on two machines and reads what it prints.
#include "gpu.hpp"
#include "test.hpp"

#include <unistd.h>

#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr int kBytes = (1 << 20) + 12;

// One small host message and one large device message, this way and back; true in `go_on` as long
// as rank 0 has not been told to stop.
int exchange(Memory& out, Memory& in, int& go_on) {
    const int peer = 1 - rank();
    const char* stop = std::getenv("MPI_TESTS_STOP");
    int mine = stop == nullptr || access(stop, F_OK) != 0, theirs = 0;
    int code = MPI_Sendrecv(&mine, 1, MPI_INT, peer, 1, &theirs, 1, MPI_INT, peer, 1,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
    go_on = rank() == 0 ? mine : theirs;
    return MPI_Sendrecv(out.data(), kBytes, MPI_BYTE, peer, 2, in.data(), kBytes, MPI_BYTE, peer, 2,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void say_lost(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    std::printf("lost: class %s: %s\n",
                error_class(code) == MPI_ERR_PROC_ABORTED ? "MPI_ERR_PROC_ABORTED" : "another",
                text);
}

}  // namespace

MPI_CASE_ENDING(exchanging_until_told, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    Memory out(Kind::device, kBytes), in(Kind::device, kBytes);
    int exchanges = 0;
    for (int go_on = 1; go_on != 0; ++exchanges) {
        const auto seed = static_cast<unsigned>(exchanges);
        out.fill(2 * seed + static_cast<unsigned>(rank()));
        if (const int code = exchange(out, in, go_on); code != MPI_SUCCESS) {
            say_lost(code);
            // What comes after fails at once.
            int value = 0;
            CHECK_EQ(error_class(MPI_Recv(&value, 1, MPI_INT, 1 - rank(), 3, MPI_COMM_WORLD,
                                          MPI_STATUS_IGNORE)),
                     MPI_ERR_PROC_ABORTED);
            return;
        }
        CHECK_EQ(in.differs(2 * seed + static_cast<unsigned>(1 - rank()), kBytes), -1);
        if (exchanges == 0) std::printf("exchanging\n");
        std::fflush(stdout);
    }
    std::printf("%d exchanges\n", exchanges);
}

MPI_CASE_ENDING(waiting_for_a_message_that_never_comes, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    Memory out(Kind::device, kBytes), in(Kind::device, kBytes);
    int go_on = 0;
    OK(exchange(out, in, go_on));
    std::printf("exchanging\n");
    std::fflush(stdout);
    int value = 0;
    say_lost(MPI_Recv(&value, 1, MPI_INT, 1 - rank(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}
