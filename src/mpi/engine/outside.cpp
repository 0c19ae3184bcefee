// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/outside.hpp"

#include "mpi/engine/boundary.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/request/status.hpp"

namespace gantry::mpi::outside {
namespace {

// Shorter messages take less than their way through the box saves, and those to devices go together
// with others of the program's (device/fused_queue.hpp).
constexpr Bytes kLong = 64 * kKiB;

bool post(p2p::RequestKind kind, p2p::SendMode mode, void* buf, MPI_Count count,
          MPI_Datatype datatype, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
    Boundary& boundary = *boundary_now();
    if (!boundary.takes_posts()) return false;
    Comm* on = find(comm);
    Datatype* type = find(datatype);
    if (on == nullptr || type == nullptr || !type->committed || buf == nullptr ||
        buf == MPI_IN_PLACE || count <= 0 || tag < 0 || request == nullptr)
        return false;
    if (peer < 0 || peer >= on->peers()) return false;
    const p2p::Buffer what = buffer(buf, count, *type);
    if (what.bytes() <= kLong) return false;
    Engine& engine = *on->engine;
    p2p::Request* made = engine.submission_queue().put({kind, mode, &on->group, what, peer, tag});
    if (made == nullptr) return false;
    *request = engine.requests().hand_out(made, *on, type);
    engine.submission_queue().post(*made);
    boundary.posted();
    return true;
}

}  // namespace

bool post_send(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
               MPI_Comm comm, p2p::SendMode mode, MPI_Request* request) {
    return post(p2p::RequestKind::send, mode, const_cast<void*>(buf), count, datatype, dest, tag,
                comm, request);
}

bool post_receive(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                  MPI_Comm comm, MPI_Request* request) {
    return post(p2p::RequestKind::receive, p2p::SendMode::standard, buf, count, datatype, source,
                tag, comm, request);
}

bool take_ended(int count, MPI_Request* requests, MPI_Status* statuses) {
    return boundary_now()->may_stay_outside() &&
           take_ended(*process().engine, count, requests, statuses);
}

bool take_ended(Engine& engine, int count, MPI_Request* requests, MPI_Status* statuses) {
    SubmissionQueue& box = engine.submission_queue();
    if (count < 0) return false;
    for (int i = 0; i < count; ++i)
        if (requests[i] != MPI_REQUEST_NULL && box.ended_well(requests[i]) == nullptr) return false;
    for (int i = 0; i < count; ++i) {
        MPI_Status* status = statuses != MPI_STATUSES_IGNORE ? &statuses[i] : nullptr;
        // Null also where the same handle stood before.
        Request* request = box.ended_well(requests[i]);
        if (request == nullptr) {
            write_empty(status);
            continue;
        }
        const Status ended = engine.requests().retire(requests[i], *request, status);
        GANTRY_ASSERT(ended.ok());
        box.note_taken();
    }
    return true;
}

}  // namespace gantry::mpi::outside
