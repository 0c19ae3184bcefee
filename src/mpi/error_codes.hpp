// SPDX-License-Identifier: BSD-3-Clause
//
// The error classes, codes and strings that a program adds (MPI 5.0 section 9.5). Numbers count up from above MPI_ERR_LASTCODE.
#pragma once

#include <map>
#include <string>

namespace gantry::mpi {

struct UserError {
    int error_class;     // itself, for a class
    std::string text;
};

struct UserErrors {
    std::map<int, UserError> codes;
    int last_used;       // value of the attribute MPI_LASTUSEDCODE
    UserErrors();
};

}  // namespace gantry::mpi
