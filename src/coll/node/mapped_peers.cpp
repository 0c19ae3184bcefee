// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/mapped_peers.hpp"

#include "base/scope.hpp"
#include "transfer/mover.hpp"

#include <mpi.h>

namespace gantry::coll {

device::IpcHandle export_to(const Team& team, std::span<const int> ranks,
                            const device::Location& location) {
    device::IpcHandle handle;
    if (location.ipc != device::IpcKind::legacy) return handle;
    transfer::Context& context = *team.context;
    for (const int peer : ranks) {
        if (peer == context.world_rank) continue;
        if (handle.kind != device::IpcKind::none)
            context.exports.note(peer, handle);
        else
            handle = context.exports.name(peer, location);
        if (handle.kind == device::IpcKind::none) break;
    }
    return handle;
}

device::IpcHandle export_to_all(const Team& team, const device::Location& location) {
    return export_to(team, ranks_of(team), location);
}

Task<Status> copy_all(Executor& executor, Team team, std::vector<device::Copy> copies) {
    if (copies.empty()) co_return success();
    transfer::Context& context = *team.context;
    std::vector<device::CopyPart> parts;
    device::Copy together = one_of_several(copies.front().gpu);
    for (const device::Copy& copy : copies) {
        parts.push_back({copy.destination, copy.source, copy.bytes});
        together.bytes += copy.bytes;
    }
    together.parts = parts;
    Status ended = co_await transfer::device_copy(executor, context, together);
    if (ended.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return ended;
    Scope each(executor);
    for (const device::Copy& copy : copies)
        each.spawn(transfer::device_copy(executor, context, copy));
    context.device.flush_batch(device::BatchHint::none);
    Status all = co_await each.join(executor);
    co_return all;
}

}  // namespace gantry::coll
