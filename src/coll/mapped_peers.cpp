// SPDX-License-Identifier: BSD-3-Clause
#include "coll/mapped_peers.hpp"

#include "base/scope.hpp"
#include "transfer/mover.hpp"

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
    Completion together(executor);
    if (context.device.copy_together(copies, together)) {
        Status ended = co_await together;
        co_return ended;
    }
    Scope each(executor);
    for (const device::Copy& copy : copies)
        each.spawn(transfer::device_copy(executor, context, copy));
    context.device.flush_batch(device::BatchHint::none);
    Status all = co_await each.join(executor);
    co_return all;
}

}  // namespace gantry::coll
