// SPDX-License-Identifier: BSD-3-Clause
//
// Device messages inside a node, by direct copies, of which one rank dies, or stops, in the middle:
// deaths_test.py starts the ranks itself, so that nobody ends the others, and reads what they print.
#include "gpu.hpp"
#include "test.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr std::size_t kMessages = 4;  // to the next rank, and as many from the one before
constexpr int kBytes = 1 << 20, kBefore = 4;

int number(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? -1 : std::atoi(text);
}

// The first half of the requests receives, the second sends.
struct Ring {
    std::array<std::unique_ptr<Memory>, 2 * kMessages> memory;
    std::array<MPI_Request, 2 * kMessages> requests;
    std::array<int, 2 * kMessages> codes{};
    const int from = (rank() + size() - 1) % size(), to = (rank() + 1) % size();

    Ring() {
        for (auto& each : memory)
            each = std::make_unique<Memory>(Kind::device, kBytes);
    }
    int peer(std::size_t i) const { return i < kMessages ? from : to; }
    static unsigned seed(int of, int window, std::size_t message) {
        return static_cast<unsigned>(1000 * window + 100 * of) + static_cast<unsigned>(message);
    }
    void start(int window) {
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const bool receives = i < kMessages;
            const std::size_t message = i % kMessages;
            memory[i]->fill(receives ? 99 : seed(rank(), window, message));
            requests[i] = MPI_REQUEST_NULL;
            auto* data = memory[i]->data();
            const int tag = static_cast<int>(message);
            codes[i] =
                receives
                    ? MPI_Irecv(data, kBytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests[i])
                    : MPI_Isend(data, kBytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests[i]);
        }
    }
    // Whoever waits for a rank that died hears of it; the others are done, and right.
    bool finish(int window) {
        for (std::size_t i = 0; i < requests.size(); ++i)
            if (codes[i] == MPI_SUCCESS) codes[i] = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < kMessages; ++i)
            if (codes[i] == MPI_SUCCESS)
                CHECK_EQ(memory[i]->differs(seed(from, window, i), kBytes), -1);
        return std::ranges::all_of(codes, [](int code) { return code == MPI_SUCCESS; });
    }
};

// A receive that nothing comes for, freed before its communicator is: that it could come from the
// rank that dies is asked all the same.
void receive_from_anybody_and_forget() {
    static int nothing_comes = 0;
    MPI_Comm comm;
    MPI_Request request;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Irecv(&nothing_comes, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Comm_free(&comm));
}

}  // namespace

// MPI_TESTS_DIES kills itself after so many looks at a window as MPI_TESTS_LOOKS says. What each of
// the others had with it fails; what they have with each other goes on. With MPI_TESTS_STOPS it stops
// instead until somebody wakes it, and nothing fails. MPI_TESTS_GPUS: the ranks use so many in turn.
MPI_CASE_ENDING(direct_messages_until_a_rank_dies, 3) {
    if (!gpu().simulated) skip("needs the simulator's counters");
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    use_device(rank() % std::max(number("MPI_TESTS_GPUS"), 1));
    receive_from_anybody_and_forget();
    Ring ring;
    const int dies = number("MPI_TESTS_DIES");
    int looks = number("MPI_TESTS_LOOKS"), window = 0;
    for (; window < kBefore; ++window) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (window == kBefore - 1) clear_operations();
        ring.start(window);
        CHECK(ring.finish(window));
    }
    // The checks copied what they read, too: each message is one copy besides.
    const std::uint64_t filled_and_read = 3 * kMessages;
    long mine = static_cast<long>(operations().copies - filled_and_read), all = 0;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK_EQ(all, size() * static_cast<int>(kMessages));
    std::printf("exchanging\n");
    std::fflush(stdout);

    OK(MPI_Barrier(MPI_COMM_WORLD));
    ring.start(window);
    const bool stops = number("MPI_TESTS_STOPS") > 0;
    for (int done = 0; rank() == dies && !(stops && done != 0 && looks < 0);) {
        if (looks-- == 0) std::raise(stops ? SIGSTOP : SIGKILL);
        MPI_Testall(static_cast<int>(ring.requests.size()), ring.requests.data(), &done,
                    MPI_STATUSES_IGNORE);
    }
    const bool all_came = ring.finish(window);
    if (stops) {
        CHECK(all_came);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        std::printf("rank %d was waited for\n", dies);
        return;
    }
    for (std::size_t i = 0; i < ring.codes.size(); ++i) {
        if (ring.peer(i) != dies) CHECK_EQ(ring.codes[i], MPI_SUCCESS);
        if (ring.codes[i] != MPI_SUCCESS)
            CHECK_EQ(error_class(ring.codes[i]), MPI_ERR_PROC_ABORTED);
    }
    // The two that are left.
    const int other = 3 - dies - rank();
    for (int i = 0; i < 3; ++i) {
        const auto seed = [i](int of) { return static_cast<unsigned>(50000 + 10 * i + of); };
        Memory &out = *ring.memory[0], &in = *ring.memory[1];
        out.fill(seed(rank()));
        OK(MPI_Sendrecv(out.data(), kBytes, MPI_BYTE, other, 7, in.data(), kBytes, MPI_BYTE, other,
                        7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQ(in.differs(seed(other), kBytes), -1);
    }
    char nothing = 0;
    CHECK_EQ(
        error_class(MPI_Recv(&nothing, 1, MPI_BYTE, dies, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)),
        MPI_ERR_PROC_ABORTED);
    CHECK_EQ(error_class(MPI_Ssend(&nothing, 1, MPI_BYTE, dies, 3, MPI_COMM_WORLD)),
             MPI_ERR_PROC_ABORTED);
    std::printf("lost rank %d\n", dies);
}
