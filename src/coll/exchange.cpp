// SPDX-License-Identifier: BSD-3-Clause
//
// Exchanges wait on requests rather than on tasks: a receive is posted, a send queued, then both
// are awaited. A copy inside the process is a message to itself: the messenger knows every layout
// and memory kind already.
#include "coll/exchange.hpp"

#include <cstring>

namespace gantry::coll {
namespace {

// The layout of plain bytes: one for everybody, immutable.
const layout::Layout& byte_layout() {
    static const layout::Layout layout = layout::contiguous_layout(1);
    return layout;
}

}  // namespace

p2p::Buffer bytes_buffer(const void* address, Bytes bytes) {
    return {const_cast<void*>(address), bytes, &byte_layout()};
}

Task<Status> send(Executor& executor, Team team, p2p::Buffer buffer, int to) {
    Result<p2p::Request*> started = team.messenger->isend(*team.group, buffer, team.in_group(to),
                                                          team.tag, p2p::SendMode::standard);
    if (!started.ok()) co_return std::move(started).status();
    p2p::Request* request = *started;
    Status sent = co_await request->finished(executor);
    team.messenger->release(request);
    co_return sent;
}

Task<Status> receive(Executor& executor, Team team, p2p::Buffer buffer, int from) {
    Result<p2p::Request*> started =
        team.messenger->ireceive(*team.group, buffer, team.in_group(from), team.tag);
    if (!started.ok()) co_return std::move(started).status();
    p2p::Request* request = *started;
    Status received = co_await request->finished(executor);
    team.messenger->release(request);
    co_return received;
}

Task<Status> exchange(Executor& executor, Team team, p2p::Buffer outgoing, int to,
                      p2p::Buffer incoming, int from) {
    const p2p::Messenger::Half out{outgoing, team.in_group(to), team.tag},
        in{incoming, team.in_group(from), team.tag};
    Result<p2p::Messenger::Exchange> started =
        team.messenger->exchange(*team.group, &out, &in, false);
    if (!started.ok()) co_return std::move(started).status();
    Status sent = co_await started->sending->finished(executor);
    team.messenger->release(started->sending);
    Status received = co_await started->receiving->finished(executor);
    team.messenger->release(started->receiving);
    GANTRY_CO_TRY(sent);
    co_return received;
}

Task<Status> copy_local(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink) {
    if (source.bytes() == 0) co_return success();
    Status copied = co_await exchange(executor, team, source, team.rank(), sink, team.rank());
    co_return copied;
}

}  // namespace gantry::coll
