// SPDX-License-Identifier: BSD-3-Clause
//
// What calls of MPI do without coming into the engine when a progress thread drives it: they leave
// long messages in its submission queue, and take what has ended out of it. Each of these has the arguments
// of its MPI function as they are, and does all of the call or nothing: false, also for every
// argument that is not good; then the call goes its usual way.
#pragma once

#include "mpi/engine/process.hpp"

#include <mpi.h>

namespace gantry::mpi::outside {

[[gnu::cold]] bool post_send(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest,
                             int tag, MPI_Comm comm, p2p::SendMode mode, MPI_Request* request);
[[gnu::cold]] bool post_receive(void* buf, MPI_Count count, MPI_Datatype datatype, int source,
                                int tag, MPI_Comm comm, MPI_Request* request);
[[gnu::cold]] bool take_ended(int count, MPI_Request* requests, MPI_Status* statuses);
// The same where it is known that the call may stay outside.
bool take_ended(Engine& engine, int count, MPI_Request* requests, MPI_Status* statuses);

// Programs without such a thread look at one pointer.
inline bool possible() {
    return process().boundary.load(std::memory_order_relaxed) != nullptr;
}

inline bool isend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                  MPI_Comm comm, MPI_Request* request) {
    return possible() &&
           post_send(buf, count, datatype, dest, tag, comm, p2p::SendMode::standard, request);
}
inline bool issend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Request* request) {
    return possible() &&
           post_send(buf, count, datatype, dest, tag, comm, p2p::SendMode::synchronous, request);
}
inline bool irsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Request* request) {
    return possible() &&
           post_send(buf, count, datatype, dest, tag, comm, p2p::SendMode::ready, request);
}
inline bool irecv(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                  MPI_Comm comm, MPI_Request* request) {
    return possible() && post_receive(buf, count, datatype, source, tag, comm, request);
}
inline bool wait(MPI_Request* request, MPI_Status* status) {
    return possible() && request != nullptr && take_ended(1, request, status);
}
inline bool waitall(int count, MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
    return possible() && array_of_requests != nullptr &&
           take_ended(count, array_of_requests, array_of_statuses);
}

}  // namespace gantry::mpi::outside
