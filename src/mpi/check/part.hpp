// SPDX-License-Identifier: BSD-3-Clause
//
// Part: some of the data of a collective operation, as one rank describes it to another. Plain data:
// it travels.
#pragma once

#include "base/status.hpp"
#include "mpi/check/signature.hpp"

#include <string>

namespace gantry::mpi {

struct Part {
    Signature signature;
    Bytes bytes = 0;

    // Whether what is sent so may be received so. Of what matches anything only the bytes count.
    bool matches(const Part& other) const;
    std::string words() const { return mpi::words(signature); }
};

Part part_of(const p2p::Buffer& buffer);
// MPI_ERR_TYPE or MPI_ERR_COUNT, for two that do not match.
int class_of_difference(const Part& one, const Part& other);

}  // namespace gantry::mpi
