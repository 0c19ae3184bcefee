// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mapped_peers.hpp"

#include "base/scope.hpp"
#include "transfer/mover.hpp"

#include <mpi.h>

namespace gantry::coll {

device::IpcHandle export_to_all(const Team& team, const device::Location& location) {
    device::IpcHandle handle;
    if (location.ipc != device::IpcKind::legacy) return handle;
    transfer::ExportTable& exports = team.messenger->context().exports;
    for (int member = 0; member < team.size(); ++member) {
        if (member == team.rank()) continue;
        const int peer = team.group->peer(team.in_group(member));
        if (handle.kind != device::IpcKind::none)
            exports.note(peer, handle);
        else
            handle = exports.name(peer, location);
        if (handle.kind == device::IpcKind::none) break;
    }
    return handle;
}

Task<Status> copy_all(Executor& executor, Team team, std::vector<device::Copy> copies) {
    if (copies.empty()) co_return success();
    transfer::Context& context = team.messenger->context();
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
