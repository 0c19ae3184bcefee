// SPDX-License-Identifier: BSD-3-Clause
#include "coll/flat.hpp"

#include "transfer/local_move.hpp"

namespace gantry::coll {

Status Flat::make(const Team& team, const p2p::Buffer& buffer) {
    original_ = buffer;
    apart_ = !buffer.contiguous();
    bytes_ = transfer::bytes_buffer(apart_ ? nullptr : buffer.data(), buffer.bytes());
    if (!apart_) return success();
    GANTRY_TRY(packed_.allocate(team, bytes_.count, *bytes_.layout));
    bytes_ = packed_.buffer();
    return success();
}

Task<Status> Flat::load(Executor& executor, Team team) {
    if (!apart_) co_return success();
    Status loaded = co_await transfer::copy_local(executor, *team.context, original_, bytes_);
    co_return loaded;
}

Task<Status> Flat::store(Executor& executor, Team team) {
    if (!apart_) co_return success();
    Status stored = co_await transfer::copy_local(executor, *team.context, bytes_, original_);
    co_return stored;
}

}  // namespace gantry::coll
