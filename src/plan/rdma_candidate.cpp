// SPDX-License-Identifier: BSD-3-Clause
#include "plan/rdma_candidate.hpp"

#include "plan/network_reach.hpp"
#include "plan/p2p_model.hpp"

namespace gantry::plan {
namespace {

const char* why_not_reached(const End& end, Reach reach) {
    if (end.kind == MemoryKind::managed) return "managed memory cannot be registered";
    if (reach == Reach::nothing) return "the network refused to register an end";
    return "no GPUDirect: rails do not reach device memory";
}

}  // namespace

Candidate rdma_candidate(const Ask& ask) {
    if (ask.peer.self) return impossible(Protocol::rdma, "the peer is this process");
    if (!ask.peer.put)
        return impossible(Protocol::rdma,
                          ask.peer.shared_memory
                              ? "the peer is reached through shared memory"
                              : "this transport cannot write into the peer's memory");
    if (!ask.contiguous()) return impossible(Protocol::rdma, "an end is not contiguous");
    if (!rails_reach(ask.source, ask.source_reach))
        return impossible(Protocol::rdma, why_not_reached(ask.source, ask.source_reach));
    if (!rails_reach(ask.sink, ask.sink_reach))
        return impossible(Protocol::rdma, why_not_reached(ask.sink, ask.sink_reach));
    Candidate candidate;
    Plan& plan = candidate.plan;
    const bool in_host = in_host_memory(ask.source) && in_host_memory(ask.sink);
    if (ask.facts.exposed && in_host) {
        plan = {.protocol = Protocol::rdma, .executor = Executor::receiver};
        plan.expected = 3 * ask.hop + transfer_time(ask.bytes, ask.peer.bytes_per_second);
        plan.why = "straight into the receiver's buffer, by a connection of its own";
        return candidate;
    }
    plan = {.protocol = Protocol::rdma, .executor = Executor::sender};
    plan.rails = rails_for(ask, ask.bytes);
    plan.expected =
        3 * ask.hop +
        transfer_time(ask.bytes, wire_rate(ask, Stage::direct, Stage::direct) * plan.rails) +
        ask.peer.put_cost;
    plan.why = by_copy_engine(ask.source) || by_copy_engine(ask.sink)
                   ? "GPUDirect: one put between the buffers, no copy"
                   : "one put into the receiver's buffer, no copy";
    if (ask.peer.rdma_from > 0) {
        const bool straight = ask.bytes >= ask.peer.rdma_from;
        if (straight) plan.expected += 2 * ask.hop;
        plan.why = straight ? "one put into the receiver's buffer, by a connection of its own"
                            : "one put into the receiver's buffer, in pieces";
    }
    return candidate;
}

}  // namespace gantry::plan
