// SPDX-License-Identifier: BSD-3-Clause
//
// What a rank does while somebody breaks its network or kills its peer: tests/net/faults_test.py
// runs this case on two machines and reads what it prints.
#include "gpu.hpp"
#include "test.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
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

// Of the call before.
std::string error_text(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

void say_lost(int code, const std::string& text) {
    std::printf("lost: class %s: %s\n",
                error_class(code) == MPI_ERR_PROC_ABORTED ? "MPI_ERR_PROC_ABORTED" : "another",
                text.c_str());
}
void say_lost(int code) {
    say_lost(code, error_text(code));
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

// Nothing has connected the two before.
MPI_CASE_ENDING(first_message_when_told, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    std::printf("exchanging\n");
    std::fflush(stdout);
    const char* told = std::getenv("MPI_TESTS_STOP");
    while (told != nullptr && access(told, F_OK) != 0)
        usleep(
            1000);  // between two looks at a file that another process makes: no event to wait for
    Memory out(Kind::device, kBytes), in(Kind::device, kBytes);
    int go_on = 0;
    if (const int code = exchange(out, in, go_on); code != MPI_SUCCESS)
        say_lost(code);
    else
        std::printf("1 exchanges\n");
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

namespace {

// Windows of large host messages from rank 0 to rank 1. The rank that MPI_TESTS_DIES names kills
// itself in the middle of one, after so many looks at it as MPI_TESTS_LOOKS says.
struct Windows {
    static constexpr int kMessages = 8, kBefore = 4, kMessageBytes = 1 << 20;
    std::array<std::vector<unsigned char>, kMessages> buffers;
    std::array<MPI_Request, kMessages> requests;
    std::array<MPI_Status, kMessages> statuses;
    int done = 0;     // windows
    std::string why;  // the first error's words

    Windows() { buffers.fill(std::vector<unsigned char>(kMessageBytes)); }
    int start();
    int finish();
    void fill(int value) {
        for (auto& buffer : buffers)
            std::fill(buffer.begin(), buffer.end(), static_cast<unsigned char>(value));
    }
    bool all_are(int value) const {
        return std::ranges::all_of(buffers, [value](const auto& buffer) {
            return std::ranges::count(buffer, static_cast<unsigned char>(value)) == kMessageBytes;
        });
    }
};

int Windows::start() {
    requests.fill(MPI_REQUEST_NULL);
    for (int i = 0; i < kMessages; ++i) {
        auto& buffer = buffers[static_cast<std::size_t>(i)];
        auto* request = &requests[static_cast<std::size_t>(i)];
        const int code =
            rank() == 0
                ? MPI_Isend(buffer.data(), kMessageBytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, request)
                : MPI_Irecv(buffer.data(), kMessageBytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, request);
        if (code == MPI_SUCCESS) continue;
        why = error_text(code);
        return code;
    }
    return MPI_SUCCESS;
}

// Of the first that ended with an error; none may be left.
int Windows::finish() {
    const int all = MPI_Waitall(kMessages, requests.data(), statuses.data());
    if (all == MPI_SUCCESS) return MPI_SUCCESS;
    if (why.empty()) why = error_text(all);
    CHECK_EQ(error_class(all), MPI_ERR_IN_STATUS);
    int first = MPI_SUCCESS;
    for (std::size_t i = 0; i < kMessages; ++i) {
        const int code = statuses[i].MPI_ERROR;
        CHECK(requests[i] == MPI_REQUEST_NULL);
        if (code != MPI_SUCCESS) CHECK_EQ(error_class(code), MPI_ERR_PROC_ABORTED);
        if (first == MPI_SUCCESS) first = code;
    }
    return first;
}

int number(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? -1 : std::atoi(text);
}

void look_until_killed(Windows& windows, int& looks) {
    int all = 0;
    while (all == 0) {
        if (looks-- == 0) std::raise(SIGKILL);
        MPI_Testall(Windows::kMessages, windows.requests.data(), &all, MPI_STATUSES_IGNORE);
    }
}

}  // namespace

MPI_CASE_ENDING(windows_of_large_host_messages, 2) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    Windows windows;
    int looks = number("MPI_TESTS_LOOKS"), code = MPI_SUCCESS;
    const bool dies = number("MPI_TESTS_DIES") == rank();
    for (; code == MPI_SUCCESS; ++windows.done) {
        if (windows.done == Windows::kBefore) {
            std::printf("exchanging\n");
            std::fflush(stdout);
            // Nobody dies before both have said so; who has left it may, with the other still in
            // it.
            code = MPI_Barrier(MPI_COMM_WORLD);
            if (code != MPI_SUCCESS) {
                windows.why = error_text(code);
                break;
            }
        }
        if (rank() == 0) windows.fill(windows.done);
        code = windows.start();
        if (dies && code == MPI_SUCCESS && windows.done >= Windows::kBefore)
            look_until_killed(windows, looks);
        const int ended = windows.finish();
        if (code == MPI_SUCCESS) code = ended;
        if (rank() == 1 && code == MPI_SUCCESS) CHECK(windows.all_are(windows.done & 0xff));
    }
    // With the error the buffers are the program's again: nobody writes into them any more.
    constexpr int kOurs = 0x5a;
    windows.fill(kOurs);
    say_lost(code, windows.why);
    for (int i = 0, found = 0; i < 1000; ++i)
        OK(MPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE));
    CHECK(windows.all_are(kOurs));
    // A receive may still meet a request to send that came before the loss; it ends with the error.
    int after = windows.start();
    if (after == MPI_SUCCESS) after = windows.finish();
    CHECK_EQ(error_class(after), MPI_ERR_PROC_ABORTED);
}
