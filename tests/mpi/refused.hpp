// SPDX-License-Identifier: BSD-3-Clause
//
// Calls that must fail: with which class, and which words in their sentence.
#pragma once

#include "test.hpp"

#include <cstring>
#include <initializer_list>
#include <string>

namespace mpi_tests {

inline void return_errors(MPI_Comm comm) {
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
}

inline std::string text_of(int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    OK(MPI_Error_string(code, text, &length));
    CHECK_EQ(std::strlen(text), length);
    return text;
}

// The call failed with this class, and its sentence holds these words.
inline void expect(int code, int wanted, std::initializer_list<const char*> words,
                   const char* what) {
    about(what);
    CHECK_EQ(error_class(code), wanted);
    const std::string text = text_of(code);
    for (const char* word : words)
        if (text.find(word) == std::string::npos)
            fail(__FILE__, __LINE__, "\"" + text + "\" does not say \"" + word + "\"");
    about("");
}

// The call failed, whatever its class, and its sentence names this.
inline void expect_failure(int code, const char* word) {
    CHECK(code != MPI_SUCCESS);
    const std::string text = text_of(code);
    if (text.find(word) == std::string::npos)
        fail(__FILE__, __LINE__, "\"" + text + "\" does not name " + word);
}

// The communicator still carries messages both ways.
inline void expect_alive(MPI_Comm comm) {
    int mine = 10 + rank(), other = -1;
    const int peer = 1 - rank();
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, peer, 900, &other, 1, MPI_INT, peer, 900, comm,
                    MPI_STATUS_IGNORE));
    CHECK_EQ(other, 10 + peer);
}

}  // namespace mpi_tests
