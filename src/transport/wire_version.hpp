// SPDX-License-Identifier: BSD-3-Clause
//
// The version of everything that two ranks say to each other: messages (transfer/wire.hpp,
// p2p/wire.hpp), frames and keys of the network, layouts of shared segments. Whoever changes one of
// these counts up. Transports compare it before the first message and refuse a mixed job.
#pragma once

#include "base/status.hpp"

#include <mpi.h>

#include <cstdint>

namespace gantry::transport {

inline constexpr std::uint32_t kWireVersion = 35;

// `where`: how the other rank is reached.
inline Status mixed_versions(const char* where, int rank, std::uint32_t theirs,
                             std::uint32_t ours = kWireVersion) {
    return failure(MPI_ERR_OTHER,
                   "{}: rank {} speaks version {} of Gantry's wire and this rank version {}: all "
                   "ranks must load the same Gantry library",
                   where, rank, theirs, ours);
}

}  // namespace gantry::transport
