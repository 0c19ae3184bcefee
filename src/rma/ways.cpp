// SPDX-License-Identifier: BSD-3-Clause
#include "rma/ways.hpp"

#include "rma/windows.hpp"

#include <map>
#include <tuple>

namespace gantry::rma {
namespace {

bool is_one_run(const Access& access) {
    const layout::Layout& layout = *access.layout;
    return layout.contiguous() || (access.count == 1 && layout.one_run);
}

}  // namespace

// What is attached to a dynamic window may be.
bool Ways::is_on_device(const Target& of) const {
    return of.on_device || window.flavor == Flavor::dynamic;
}

plan::WindowFacts Ways::ways_to(int of_rank) const {
    const Target& of = target(of_rank);
    plan::WindowFacts facts;
    facts.direct = of.direct || (of.attachments.has_value() && of.process != 0);
    facts.changed_by_gpu = of.location.kind == device::MemoryKind::device &&
                           windows.context.tuning.kernels &&
                           windows.context.config.reduce_on != "host";
    if (of.direct) return facts;
    const transfer::Endpoint& peer = windows.context.endpoints.to(of.peer);
    facts.keyed = of.key != nullptr;
    facts.on_device = is_on_device(of);
    facts.unattended = peer.facts.unattended;
    facts.gets = peer.facts.get;
    facts.rails = peer.facts.rails;
    facts.rdma_from = windows.context.config.window_rdma;
    facts.rendezvous_from = windows.context.config.window_rendezvous;
    facts.batch_bytes = windows.context.config.window_batch;
    return facts;
}

plan::WindowWay Ways::way_of(const Access& access, std::uint64_t address) {
    const Target& of = target(access.target);
    if (of.direct) return plan::WindowWay::direct;
    if (of.attachments.has_value() && window.dynamic.reaches_attached(access, address))
        return plan::WindowWay::direct;
    if (changes_items(access.verb)) return plan::WindowWay::message;
    plan::WindowFacts facts = ways_to(access.target);
    facts.direct = false;
    return way_by(access, facts);
}

// Of a put or get, as if that were known of its target.
plan::WindowWay Ways::way_by(const Access& access, const plan::WindowFacts& facts) {
    plan::WindowQuestion question = question_of(access);
    if (plan::may_go_by_rendezvous(question, facts))
        price(question, target(access.target), access.origin.location);
    return plan::window_way(question, facts);
}

// As if the target's memory, where it is a device's, were of a GPU like this one's.
void Ways::price(plan::WindowQuestion& question, const Target& of,
                 const device::Location& origin) const {
    transfer::Endpoint& peer = windows.context.endpoints.to(of.peer);
    const bool puts = question.verb == plan::WindowQuestion::Verb::put;
    const bool target_on_device = is_on_device(of);
    const plan::Facts facts = windows.context.facts_for(peer, origin, puts, nullptr);
    plan::Question large;
    large.bytes = question.bytes;
    large.sink_known = true;
    large.eager_credit = false;  // an RTS goes first
    plan::End &here = puts ? large.source : large.sink, &there = puts ? large.sink : large.source;
    here.kind = origin.kind;
    if (target_on_device) there.kind = device::MemoryKind::device;
    question.by_rendezvous = plan::rendezvous_time(
        question.verb, windows.context.selections.select(large, facts).plan(), peer.facts);
    const bool origin_on_device = question.origin_on_device;
    question.by_message =
        plan::message_time({.verb = question.verb,
                            .bytes = question.bytes,
                            .piece = window.outbound.largest_piece(of),
                            .source_on_device = puts ? origin_on_device : target_on_device,
                            .sink_on_device = puts ? target_on_device : origin_on_device},
                           peer.facts, windows.context.gpu(facts.source_gpu));
}

plan::WindowQuestion Ways::question_of(const Access& access) {
    using Question = plan::WindowQuestion;
    const transfer::Endpoint& peer = windows.context.endpoints.to(target(access.target).peer);
    return {.verb = access.verb == Verb::put ? Question::Verb::put : Question::Verb::get,
            .bytes = access.bytes,
            .one_run = is_one_run(access),
            .origin_plain = window.rdma.network_reaches(access.origin, peer),
            .origin_on_device = access.origin.on_device(),
            .whole = access.origin.buffer.bytes() == access.bytes &&
                     access.count * access.layout->size == access.bytes};
}

// The power of two from which puts from device memory like this rank's go by rendezvous; 0: none is.
Bytes Ways::rendezvous_from_of(const Target& of) const {
    constexpr Bytes kMost = kGiB;
    device::Location on_device;
    on_device.kind = device::MemoryKind::device;
    for (Bytes bytes = 1; bytes <= kMost; bytes *= 2) {
        plan::WindowQuestion question{.bytes = bytes, .origin_on_device = true};
        price(question, of, on_device);
        if (question.by_rendezvous < question.by_message) return bytes;
    }
    return 0;
}

// One sentence for all ranks that are reached alike.
void Ways::explain_ways() const {
    if (!windows.context.explain.on()) return;
    std::map<std::tuple<bool, bool, bool, bool, int>, std::pair<int, plan::WindowFacts>> alike;
    for (int of_rank = 0; of_rank < size(); ++of_rank) {
        if (of_rank == rank()) continue;
        const plan::WindowFacts facts = ways_to(of_rank);
        auto& [ranks, known] =
            alike[{facts.direct, facts.changed_by_gpu, facts.keyed, facts.unattended, facts.rails}];
        ++ranks;
        known = facts;
        if (facts.on_device && facts.rendezvous_from == 0)
            known.rendezvous_from = rendezvous_from_of(target(of_rank));
    }
    for (const auto& [key, of] : alike)
        windows.context.explain.note_of_window(window.number(),
                                               plan::window_sentence(of.first, of.second));
}

}  // namespace gantry::rma
