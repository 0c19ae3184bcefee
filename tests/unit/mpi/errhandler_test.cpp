// SPDX-License-Identifier: BSD-3-Clause
//
// Where failures end: the right handler hears of them, and the call returns the code.
#include "running.hpp"

#include <cstring>

namespace gantry::mpi {
namespace {

struct Heard {
    MPI_Comm comm = MPI_COMM_NULL;
    int code = 0, times = 0;
};
Heard heard;

void listen(MPI_Comm* comm, int* code, ...) {
    heard.comm = *comm;
    heard.code = *code;
    ++heard.times;
    *code = MPI_SUCCESS;  // what a handler leaves here does not change what the call returns
}

void ignore(MPI_Win*, int*, ...) {}

class ErrorHandlers : public RunningMpi {};

TEST_F(ErrorHandlers, OfTheProgramAreCalledAndTheCallStillReturnsTheCode) {
    MPI_Comm comm = MPI_COMM_NULL;
    expect_ok(wait(blocking(self(), comm_dup(self(), &comm))));
    MPI_Errhandler errhandler;
    expect_ok(comm_create_errhandler(listen, &errhandler));
    expect_ok(comm_set_errhandler(*find(comm), *find(errhandler)));
    expect_ok(errhandler_free(&errhandler));
    EXPECT_EQ(errhandler, MPI_ERRHANDLER_NULL);
    heard = {};
    EXPECT_EQ(raise(find(comm), failure(MPI_ERR_RANK, "test"), "MPI_Send"), MPI_ERR_RANK);
    EXPECT_EQ(std::tuple(heard.comm, heard.code, heard.times), std::tuple(comm, MPI_ERR_RANK, 1));
    expect_ok(comm_get_errhandler(*find(comm), &errhandler));
    EXPECT_NE(find(errhandler), nullptr) << "a new handle to the handler in use";
    expect_ok(errhandler_free(&errhandler));
    expect_ok(comm_call_errhandler(*find(comm), MPI_ERR_TAG));
    EXPECT_EQ(std::tuple(heard.code, heard.times), std::tuple(MPI_ERR_TAG, 2));
}

TEST_F(ErrorHandlers, OfWindowsAreRefusedByCommunicators) {
    MPI_Errhandler errhandler;
    expect_ok(win_create_errhandler(ignore, &errhandler));
    expect_class(comm_set_errhandler(self(), *find(errhandler)), MPI_ERR_ARG);
}

TEST_F(ErrorHandlers, ThatAreFatalSayWhatWhereAndEndTheProcess) {
    MPI_Comm comm = MPI_COMM_NULL;
    expect_ok(wait(blocking(self(), comm_dup(self(), &comm))));
    expect_ok(comm_set_name(*find(comm), "rings"));
    expect_ok(comm_set_errhandler(*find(comm), *find(MPI_ERRORS_ARE_FATAL)));
    EXPECT_EXIT(raise(find(comm), failure(MPI_ERR_RANK, "rank 7 of 1"), "MPI_Send"),
                ::testing::ExitedWithCode(MPI_ERR_RANK),
                "MPI_Send failed: MPI_ERR_RANK: rank 7 of 1.*rings");
}

TEST(ErrorStrings, NameTheClassOfEveryPredefinedCode) {
    for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; ++code) {
        int error = -1, length = 0;
        char text[MPI_MAX_ERROR_STRING];
        expect_ok(error_class(code, &error));
        EXPECT_EQ(error, code);
        expect_ok(error_string(code, text, &length));
        EXPECT_EQ(static_cast<std::size_t>(length), std::strlen(text));
        EXPECT_EQ(std::strncmp(text, "MPI_", 4), 0) << text;
    }
    int error = 0;
    expect_class(error_class(100000, &error), MPI_ERR_ARG);
}

TEST(ErrorStrings, OfTheProgramCanBeAddedAndRemoved) {
    int added = 0, length = 0, error = 0;
    char text[MPI_MAX_ERROR_STRING];
    expect_ok(add_error_class(&added));
    EXPECT_GT(added, MPI_ERR_LASTCODE);
    expect_ok(add_error_string(added, "the reactor is too hot"));
    expect_ok(error_string(added, text, &length));
    EXPECT_STREQ(text, "the reactor is too hot");
    expect_class(add_error_string(MPI_ERR_TAG, "mine"), MPI_ERR_ARG);
    expect_ok(remove_error_string(added));
    expect_ok(remove_error_class(added));
    expect_class(error_class(added, &error), MPI_ERR_ARG);
}

}  // namespace
}  // namespace gantry::mpi
