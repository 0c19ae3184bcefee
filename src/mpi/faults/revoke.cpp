// SPDX-License-Identifier: BSD-3-Clause
//
// MPIX_Comm_revoke, MPIX_Win_revoke, MPIX_File_revoke: each of a context. Messages and handshakes of that end in
// p2p and on the node segment (p2p/revoked.cpp). The mailbox of a communicator is its own, so are the waits of a window
// (rma/window.cpp); a file waits for messages, and for the window that holds its shared pointer.
#include "mpi/faults/faults.hpp"

#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "io/file.hpp"
#include "p2p/group.hpp"
#include "p2p/reason.hpp"
#include "rma/window.hpp"

namespace gantry::mpi {
namespace {

Status revoked_window() {
    return failure(
        MPIX_ERR_REVOKED,
        "the window is revoked: free it, and make another one on a communicator of those "
        "that live (MPIX_Comm_shrink)");
}

std::uint32_t context_of(const Win& win) {
    return p2p::base_context(win.window->group.context);
}
std::uint32_t context_of(const File& file) {
    return p2p::base_context(file.file->group.context);
}

bool is_revoked(Engine& engine, std::uint32_t context) {
    return engine.started() && engine.messenger().is_revoked(context);
}

}  // namespace

Status unless_revoked(const Comm& comm) {
    return comm.engine->messenger().is_revoked(comm.group.context) ? p2p::revoked_status()
                                                                   : success();
}

std::vector<int> end_revoked(std::uint32_t context) {
    std::vector<int> members;
    process().comms.for_each([&](Comm& comm) {
        if (comm.group.context != context) return;
        comm.mailbox_use.revoke(p2p::revoked_status());
        members = comm.collective.peers;
    });
    process().wins.for_each([&](Win& win) {
        if (win.window == nullptr || context_of(win) != context) return;
        win.window->revoke(revoked_window());
        members = win.window->group.peers;
    });
    process().files.for_each([&](File& file) {
        if (file.file == nullptr || context_of(file) != context) return;
        file.file->shared.revoke(file.file->revoked_status());
        members = file.file->group.peers;
    });
    return members;
}

void end_if_revoked(Comm& made) {
    Engine& engine = *made.engine;
    if (!is_revoked(engine, made.group.context)) return;
    made.mailbox_use.revoke(p2p::revoked_status());
    engine.revocations().learn_members(made.group.context, made.collective.peers);
}

void end_if_revoked(Win& made) {
    const std::uint32_t context = context_of(made);
    if (!is_revoked(*made.engine, context)) return;
    made.window->revoke(revoked_window());
    made.engine->revocations().learn_members(context, made.window->group.peers);
}

void end_if_revoked(File& made) {
    const std::uint32_t context = context_of(made);
    if (!is_revoked(*made.engine, context)) return;
    made.file->shared.revoke(made.file->revoked_status());
    made.engine->revocations().learn_members(context, made.file->group.peers);
}

Status unless_revoked(const File& file) {
    // Where a rank has died, calls of one rank go on, and those of all hear of the death (io/survive.cpp).
    const bool revoked = is_revoked(*file.engine, context_of(file)) &&
                         file.engine->revocations().is_by_program(context_of(file));
    return revoked ? file.file->revoked_status() : success();
}

Status win_revoke(Win& win) {
    win.engine->revocations().revoke(context_of(win));
    return success();
}

Status file_revoke(File& fh) {
    fh.engine->revocations().revoke(context_of(fh));
    return success();
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
