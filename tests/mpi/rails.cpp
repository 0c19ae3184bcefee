// SPDX-License-Identifier: BSD-3-Clause
//
// What two ranks do while somebody cuts one of their rails: tests/net/rails_test.py runs this case on
// two machines and reads what it prints. Until the file MPI_TESTS_START is there they say nothing to
// each other; MPI_TESTS_ROUNDS is how many rounds they exchange at least, and until MPI_TESTS_STOP is there.
#include "gpu.hpp"
#include "rma.hpp"
#include "test.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr std::size_t kMessageBytes = (2 << 20) + 20, kPutBytes = 300'000;
constexpr int kSums = 2000, kSmall = 20;
constexpr unsigned kLeast = 20;  // rounds

void wait_for_file(const char* name) {
    std::printf("ready\n");
    std::fflush(stdout);
    while (access(name, F_OK) != 0)
        sched_yield();
}

unsigned least_rounds() {
    const char* asked = std::getenv("MPI_TESTS_ROUNDS");
    return asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : kLeast;
}

// Large messages both ways, of host and device memory, and small ones between them.
void exchange_messages(std::array<Memory, 2>& out, std::array<Memory, 2>& in, unsigned round) {
    const int peer = 1 - rank();
    std::vector<MPI_Request> requests;
    std::array<int, kSmall> small_out{}, small_in{};
    for (int tag = 0; tag < 2; ++tag) {
        auto& sink = in[static_cast<std::size_t>(tag)];
        OK(MPI_Irecv(sink.data(), static_cast<int>(kMessageBytes), MPI_BYTE, peer, tag,
                     MPI_COMM_WORLD, &requests.emplace_back()));
    }
    for (int i = 0; i < kSmall; ++i)
        OK(MPI_Irecv(&small_in[static_cast<std::size_t>(i)], 1, MPI_INT, peer, 2, MPI_COMM_WORLD,
                     &requests.emplace_back()));
    for (int tag = 0; tag < 2; ++tag) {
        auto& source = out[static_cast<std::size_t>(tag)];
        source.fill(4 * round + 2 * static_cast<unsigned>(tag) + static_cast<unsigned>(rank()));
        OK(MPI_Isend(source.data(), static_cast<int>(kMessageBytes), MPI_BYTE, peer, tag,
                     MPI_COMM_WORLD, &requests.emplace_back()));
    }
    for (int i = 0; i < kSmall; ++i) {
        small_out[static_cast<std::size_t>(i)] = static_cast<int>(round) * kSmall + i;
        OK(MPI_Isend(&small_out[static_cast<std::size_t>(i)], 1, MPI_INT, peer, 2, MPI_COMM_WORLD,
                     &requests.emplace_back()));
    }
    OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    for (unsigned tag = 0; tag < 2; ++tag)
        CHECK_EQ(in[tag].differs(4 * round + 2 * tag + static_cast<unsigned>(peer), kMessageBytes),
                 -1);
    CHECK(small_in == small_out);
}

struct PutWindow {
    explicit PutWindow(Kind kind)
        : window(Window::Made::create, 2 * kPutBytes, kind), source(kind, kPutBytes) {}
    Window window;
    Memory source;
    std::vector<std::byte> expected = std::vector<std::byte>(kPutBytes);
};

// Everybody puts into the other one's half of each window, and reads that again.
void exchange_puts(std::array<PutWindow*, 2> windows, unsigned round) {
    const int peer = 1 - rank();
    for (PutWindow* each : windows) {
        each->source.fill(2 * round + static_cast<unsigned>(rank()));
        OK(MPI_Win_fence(0, each->window.win()));
        OK(MPI_Put(each->source.data(), static_cast<int>(kPutBytes), MPI_BYTE, peer,
                   static_cast<MPI_Aint>(static_cast<std::size_t>(rank()) * kPutBytes),
                   static_cast<int>(kPutBytes), MPI_BYTE, each->window.win()));
        OK(MPI_Win_fence(0, each->window.win()));
        std::vector<std::byte> again(kPutBytes);
        OK(MPI_Get(again.data(), static_cast<int>(kPutBytes), MPI_BYTE, peer,
                   static_cast<MPI_Aint>(static_cast<std::size_t>(rank()) * kPutBytes),
                   static_cast<int>(kPutBytes), MPI_BYTE, each->window.win()));
        OK(MPI_Win_fence(0, each->window.win()));
        for (std::size_t i = 0; i < kPutBytes; ++i)
            each->expected[i] = pattern(2 * round + static_cast<unsigned>(rank()), i);
        CHECK(again == each->expected);
    }
    for (PutWindow* each : windows) {
        std::vector<std::byte> got(kPutBytes);
        each->window.read(got.data(), kPutBytes, static_cast<std::size_t>(peer) * kPutBytes);
        for (std::size_t i = 0; i < kPutBytes; ++i)
            each->expected[i] = pattern(2 * round + static_cast<unsigned>(peer), i);
        CHECK(got == each->expected);
    }
}

}  // namespace

MPI_CASE_ENDING(everything_until_told, 2) {
    const int peer = 1 - rank();
    const char* told = std::getenv("MPI_TESTS_STOP");
    const unsigned least = least_rounds();
    if (const char* start = std::getenv("MPI_TESTS_START")) wait_for_file(start);
    std::array<Memory, 2> out{Memory(Kind::host, kMessageBytes),
                              Memory(Kind::device, kMessageBytes)},
        in{Memory(Kind::host, kMessageBytes), Memory(Kind::device, kMessageBytes)};
    PutWindow host(Kind::host), device(Kind::device);
    Window sums(Window::Made::create, kSums * sizeof(long), Kind::host, sizeof(long)),
        device_sums(Window::Made::create, kSums * sizeof(long), Kind::device, sizeof(long));
    for (Window* each : {&sums, &device_sums})
        for (std::size_t i = 0; i < kSums; ++i)
            each->set<long>(i, 0);
    std::vector<long> ones(kSums, 1);
    std::vector<double> took;
    unsigned round = 0;
    for (int go_on = 1; go_on != 0; ++round) {
        const double start = MPI_Wtime();
        exchange_messages(out, in, round);
        exchange_puts({&host, &device}, round);
        for (Window* each : {&sums, &device_sums}) {
            OK(MPI_Win_fence(0, each->win()));
            OK(MPI_Accumulate(ones.data(), kSums, MPI_LONG, peer, 0, kSums, MPI_LONG, MPI_SUM,
                              each->win()));
            OK(MPI_Win_fence(0, each->win()));
            for (std::size_t i = 0; i < kSums; i += kSums - 1)
                CHECK_EQ(each->value<long>(i), static_cast<long>(round) + 1);
        }
        if (round == least / 2) std::printf("exchanging\n");
        std::fflush(stdout);
        took.push_back(MPI_Wtime() - start);
        if (rank() == 0)
            go_on = round + 1 < least || told == nullptr || access(told, F_OK) != 0 ? 1 : 0;
        OK(MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    std::ranges::sort(took);
    std::printf("%u rounds, the median took %.1f ms and the longest %.1f ms\n", round,
                1e3 * took[took.size() / 2], 1e3 * took.back());
}
