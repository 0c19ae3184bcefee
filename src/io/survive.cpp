// SPDX-License-Identifier: BSD-3-Clause
//
// What becomes of a file when a rank that has it open dies. A collective call is many steps between ranks; a
// rank that hears of the death in one of them leaves, and others, which have not heard, would wait for its
// later ones. So it revokes the file's contexts: what waits there ends on every rank, and what comes later,
// too. All of them say the same: a rank has died. Where the program has revoked the file itself, that is said.
#include "io/file.hpp"
#include "p2p/reason.hpp"

#include <algorithm>

namespace gantry::io {
namespace {

bool is_of_faults(const Status& status) {
    return status.error_class() == MPIX_ERR_PROC_FAILED || status.error_class() == MPIX_ERR_REVOKED;
}

}  // namespace

Status File::revoked_status() const {
    return failure(MPIX_ERR_REVOKED,
                   "the handle of \"{}\" is revoked: close it, and open the file on a "
                   "communicator of those that live (MPIX_Comm_shrink)",
                   path);
}

Task<Status> File::together(Executor& executor, Task<Status> call) {
    static_cast<void>(executor);
    Status ended = co_await std::move(call);
    if (!is_of_faults(ended)) co_return ended;
    if (!files.give_up(group.context)) co_return revoked_status();
    if (window_context_ != 0) files.give_up(window_context_);
    co_return failure(
        MPIX_ERR_PROC_FAILED,
        "a rank that has \"{}\" open has died, so its collective calls fail: close it, "
        "and open it on a communicator of those that live (MPIX_Comm_shrink)",
        path);
}

std::vector<int> Files::members_of(std::uint32_t its_context) const {
    const auto found = std::ranges::find_if(known, [its_context](const File* file) {
        return p2p::base_context(file->group.context) == its_context;
    });
    return found == known.end() ? std::vector<int>{} : (*found)->group.peers;
}

}  // namespace gantry::io
