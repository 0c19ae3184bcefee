// SPDX-License-Identifier: BSD-3-Clause
#include "coll/host_reader.hpp"

#include "coll/exchange.hpp"
#include "coll/host_image.hpp"
#include "transfer/peer_memory/read.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

transfer::Endpoint& endpoint_of(const Team& team, int member) {
    return team.context->endpoints.to(team.group->peer(team.in_group(member)));
}

// The slower of two steps; one that was not measured says nothing.
plan::Step slower_rate(plan::Step one, plan::Step other) {
    return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);
}

}  // namespace

MayRead may_read(const Team& team) {
    MayRead says{.all = true, .rates = {}};
    transfer::HostReads& measured = team.context->host_reads;
    for (int member = 0; member < team.size(); ++member) {
        if (member == team.rank()) continue;
        const transfer::HostReads::Known known = measured.from(endpoint_of(team, member));
        says.all = says.all && known.reads != plan::Reads::refused;
        says.rates = known.rates;  // of this rank, whoever was read
    }
    return says;
}

void ask_with(plan::CollNodeSegment& node_segment, const MayRead& says) {
    node_segment.no_reads = node_segment.no_reads || !says.all;
    node_segment.rates.slots = slower_rate(node_segment.rates.slots, says.rates.slots);
    node_segment.rates.reads = slower_rate(node_segment.rates.reads, says.rates.reads);
    node_segment.rates.call = std::max(node_segment.rates.call, says.rates.call);
}

Task<Status> read_from(Executor& executor, Team team, int member, std::uint64_t address, void* to,
                       Bytes bytes) {
    return transfer::read(executor, *team.context, {endpoint_of(team, member), address, bytes},
                          static_cast<std::byte*>(to));
}

Task<Status> read_into(Executor& executor, Team team, int member, std::uint64_t address,
                       p2p::Buffer sink, Bytes bytes) {
    if (sink.contiguous() && on_host(team, sink)) {
        Status read = co_await read_from(executor, team, member, address, sink.data(), bytes);
        co_return read;
    }
    HostImage packed;
    Status ready = packed.allocate(team, bytes, *transfer::bytes_buffer(nullptr, 0).layout);
    GANTRY_CO_TRY(ready);
    Status read = co_await read_from(executor, team, member, address, packed.address(), bytes);
    GANTRY_CO_TRY(read);
    Status copied = co_await copy(executor, team, packed.buffer(), sink);
    co_return copied;
}

}  // namespace gantry::coll
