// SPDX-License-Identifier: BSD-3-Clause
#include "transport/transport.hpp"

#include <mpi.h>

namespace gantry::transport {

void Transport::get(int, int, void*, Bytes, const Region&, const RemoteKey&, Bytes,
                    Completion& done) {
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} reads no registered memory", name()));
}

Status Transport::expose(int, MessageKind, ConstSpan, std::uint64_t, const void*, Bytes,
                         Completion&) {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} does not expose memory", name());
}

bool Transport::put_and_tell(int, int, const void*, Bytes, const Region&, const RemoteKey&, Bytes,
                             MessageKind, ConstSpan, Completion&) {
    return false;
}

void Transport::read_memory(int, std::uint64_t, void*, Bytes, Completion& done) {
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} reads no memory of peers", name()));
}

void Transport::get_exposed(int, std::uint64_t, void*, Bytes, Completion& done) {
    done.complete(failure(MPI_ERR_UNSUPPORTED_OPERATION, "{} does not expose memory", name()));
}

}  // namespace gantry::transport
