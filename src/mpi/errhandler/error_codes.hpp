// SPDX-License-Identifier: BSD-3-Clause
//
// The error classes, codes and strings that a program adds (MPI 5.0 section 9.5). Numbers count up
// from above MPI_ERR_LASTCODE. Codes that calls return are classes; what MPI_Error_string tells
// about one ends with the sentence of its latest failure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gantry::mpi {

struct UserError {
    int error_class;  // itself, for a class
    std::string text;
};

struct UserErrors {
    std::map<int, UserError> codes;
    int last_used;                      // value of the attribute MPI_LASTUSEDCODE
    std::map<int, std::string> latest;  // by class: the latest failure of any thread in words
    UserErrors();
};

// A call fails: MPI_Error_string of its class says how from now on, in this thread and in those
// without a failure of that class.
void remember_failure(int error_class, const char* function, std::string_view text);

}  // namespace gantry::mpi
