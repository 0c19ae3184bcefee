// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_Comm_revoke. Messages and meetings of its context end in p2p and on the board (p2p/revoked.cpp); the
// lane of the communicator is its own.
#include "mpi/faults/faults.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "p2p/reason.hpp"

namespace gantry::mpi {

Status unless_revoked(const Comm& comm) {
    return comm.engine->messenger().is_revoked(comm.group.context) ? p2p::revoked_status()
                                                                   : success();
}

std::vector<int> end_revoked(std::uint32_t context) {
    std::vector<int> members;
    process().comms.for_each([&](Comm& comm) {
        if (comm.group.context != context) return;
        comm.lane_use.revoke(p2p::revoked_status());
        members = comm.collective.peers;
    });
    return members;
}

void end_if_revoked(Comm& made) {
    Engine& engine = *made.engine;
    if (!engine.started() || !engine.messenger().is_revoked(made.group.context)) return;
    made.lane_use.revoke(p2p::revoked_status());
    engine.revocations().learn_members(made.group.context, made.collective.peers);
}

Status comm_revoke(Comm& comm) {
    comm.engine->revocations().revoke(comm.group.context);
    return success();
}

Status comm_is_revoked(Comm& comm, int* flag) {
    *flag = comm.engine->messenger().is_revoked(comm.group.context) ? 1 : 0;
    return success();
}

}  // namespace gantry::mpi
