// SPDX-License-Identifier: BSD-3-Clause
#include "plan/pipeline_candidate.hpp"

#include "plan/bar.hpp"
#include "plan/direct_copy.hpp"
#include "plan/network_reach.hpp"
#include "plan/p2p_model.hpp"
#include "plan/slot_copies.hpp"

#include <algorithm>
#include <optional>

namespace gantry::plan {
namespace {

constexpr Bytes kSmallestChunk = 16 * kKiB;
constexpr Bytes kLargestChunk = 4 * kMiB;
// A chunk given by the user or a started pipeline is taken as it is, but not below one cache line.
constexpr Bytes kSmallestFixedChunk = 64;
// Cells cost nothing to hold, and more of them hide that the two processors copying do not run in
// step.
constexpr int kHostCellsInFlight = 8;

Leg slot_leg(const Ask& ask, CopyEngine engine, const device::GpuFacts& gpu, double engine_rate,
             Executor executor) {
    if (engine == CopyEngine::cpu) {
        double rate = ask.peer.shared_memory ? ask.peer.bytes_per_second : kHostCopyRate;
        if (ask.facts.rates.slots != 0) rate = ask.facts.rates.slot_bytes_per_second();
        // Beside a device's slot: in the cache, or by streaming stores past it.
        if (by_copy_engine(ask.source) || by_copy_engine(ask.sink)) {
            const bool into = executor == Executor::sender && ask.peer.shared_memory;
            rate = ask.bytes < (into ? kStreamedIntoSlotsFrom : kStreamedFrom)
                       ? gpu.host_bytes_per_second
                       : gpu.host_streaming_bytes_per_second;
        }
        return {kPieceHandling, kPieceHandling, rate};
    }
    if (engine == CopyEngine::bar) return bar_leg(gpu, kPieceHandling);
    // On a shared GPU a kernel takes a turn of the compute queue for each piece; copies to and from
    // host memory do not (small ones are issued as two rows).
    const Nanoseconds turn = engine == CopyEngine::kernel ? ask.turn(executor) : 0;
    const Nanoseconds latency = engine == CopyEngine::copy_engine && executor == Executor::sender
                                    ? latency_to_slot(ask)
                                    : gpu.copy_latency;
    return {latency + turn, gpu.chunk_cost + turn, engine_rate};
}

Line pipeline_line(const Ask& ask, const Plan& plan, bool host_cells, bool put) {
    const transport::PeerFacts& peer = ask.peer;
    Line line;
    line.handshake = 2 * ask.hop;
    line.tail = ask.hop;
    line.ahead = plan.source_stage == Stage::slot;
    if (plan.source_stage == Stage::slot)
        line.add(slot_leg(ask, plan.source_engine, ask.source_gpu,
                          ask.source_gpu.d2h_bytes_per_second, Executor::sender));
    if (!peer.shared_memory)
        line.add({ask.hop, peer.put_cost + kPieceHandling,
                  wire_rate(ask, plan.source_stage, plan.sink_stage) * std::max(1, peer.rails)});
    if (plan.sink_stage == Stage::slot)
        line.add(slot_leg(ask, plan.sink_engine, ask.sink_gpu, ask.sink_gpu.h2d_bytes_per_second,
                          Executor::receiver));

    // An offer, which does not know its sink, takes the engines for two.
    line.take_turns = peer.shared_memory && ask.facts.same_gpu &&
                      ask.source_gpu.copy_engines == 1 && is_copy_engine(plan.source_engine) &&
                      is_copy_engine(plan.sink_engine);

    // A quarter of the pool per message: sinks and other messages keep the rest.
    line.in_flight = (host_cells ? ask.tuning.host_pool : ask.tuning.device_pool) / 4;
    Bytes ceiling = std::max(line.in_flight, kSmallestFixedChunk);
    if (!peer.shared_memory && !put)
        ceiling = std::min(ceiling, std::max<Bytes>(1, peer.eager_max));
    line.smallest_chunk = std::min(kSmallestChunk, ceiling);
    line.largest_chunk = std::min(kLargestChunk, ceiling);
    if (peer.shared_memory) line.equal_unit = kDeviceSlotUnit;
    if (host_cells) {
        line.fixed_chunk = std::min(ask.tuning.host_cell, ceiling);
        line.shallowest = kHostCellsInFlight;
    } else if (ask.question.started_chunk != 0) {
        line.fixed_chunk = std::min(ask.question.started_chunk, ceiling);
    } else if (ask.tuning.chunk != 0) {
        line.fixed_chunk =
            std::clamp(ask.tuning.chunk, std::min(kSmallestFixedChunk, ceiling), ceiling);
    }
    if (!host_cells) line.fixed_depth = ask.tuning.depth;
    return line;
}

const char* why_pipeline(const Ask& ask, const Plan& plan, const Line& line, const Pieces& pieces) {
    const bool to_gpu = by_copy_engine(ask.sink);
    if (!by_copy_engine(ask.source) && !to_gpu)
        return ask.peer.shared_memory ? "through shared cells: both sides copy at once"
                                      : "an end is not contiguous: packed piece by piece";
    const bool direct_source = plan.source_stage == Stage::direct && by_copy_engine(ask.source);
    const bool direct_sink = plan.sink_stage == Stage::direct && to_gpu;
    if (direct_source) return "GPUDirect at the source, slots at the sink";
    if (direct_sink) return "slots at the source, GPUDirect at the sink";
    if (ask.bytes <= pieces.chunk)
        return plan.source_stage == Stage::slot ? "one piece, copied to its slot before the answer"
                                                : "one piece";
    if (line.take_turns)
        return "staged in shared pinned memory: the GPU's only copy engine makes all copies";
    if (ask.peer.shared_memory) return "staged in shared pinned memory: the copies overlap";
    const int wire = plan.source_stage == Stage::slot ? 1 : 0;
    return pieces.slowest_leg == wire ? "the copies hide behind the link, which is slower"
                                      : "the link hides behind the copies, which are slower";
}

Candidate pipeline_through(const Ask& ask, Stage source, Stage sink) {
    const transport::PeerFacts& peer = ask.peer;
    const bool put = !peer.shared_memory && peer.put;
    Candidate candidate;
    Plan& plan = candidate.plan;
    plan = {.protocol = Protocol::pipeline, .executor = Executor::sender};
    plan.source_stage = source;
    plan.sink_stage = sink;
    if (source == Stage::slot) plan.source_engine = slot_engine(ask, ask.source);
    if (sink == Stage::slot)
        plan.sink_engine = writes_by_bar(ask) ? CopyEngine::bar : slot_engine(ask, ask.sink);

    const bool host_cells =
        peer.shared_memory && in_host_memory(ask.source) && in_host_memory(ask.sink);
    const Line line = pipeline_line(ask, plan, host_cells, put);
    const Pieces pieces = best_pieces(line, ask.bytes);
    plan.chunk = pieces.chunk;
    plan.depth = pieces.depth;
    plan.rails = put ? rails_for(ask, std::min(pieces.chunk, ask.bytes)) : 1;
    plan.expected = pieces.expected + (host_cells ? 0 : slots_to_lock(ask));
    // The copy right behind one whose end is a flag waits longer than behind an event.
    if (ask.bytes <= pieces.chunk) {
        const device::GpuFacts& gpu = by_copy_engine(ask.source) ? ask.source_gpu : ask.sink_gpu;
        plan.completion = seen_by(gpu, gpu.host_event_seen);
    }
    // Page-locked memory is mostly bound for a device, and then put there directly: copying pieces
    // ahead would hold that up for the sake of one hop.
    const bool may_be_put = ask.source.kind == MemoryKind::pinned && peer.shared_memory &&
                            ask.tuning.ipc && ask.bytes > kSmallestChunk;
    if (!ask.question.sink_known && line.ahead && !may_be_put) plan.ahead = pieces.depth;
    // A small copy into a shared GPU would wait for its compute queue; two rows do not.
    if (ask.facts.same_gpu && plan.sink_engine == CopyEngine::copy_engine &&
        std::min(plan.chunk, ask.bytes) < ask.sink_gpu.turns_below(MemoryKind::pinned))
        plan.sink_engine = CopyEngine::copy_engine_2d;
    plan.why = why_pipeline(ask, plan, line, pieces);
    if (ask.question.already_staged)
        plan.why = "the sender had copied all of it to slots before the receive was known";
    return candidate;
}

}  // namespace

// Each end through slots or, where rails reach it, in place. Device memory that they reach slowly
// may be better off in slots: small messages in place, large ones staged, as the rates say.
Candidate pipeline_candidate(const Ask& ask) {
    const transport::PeerFacts& peer = ask.peer;
    if (peer.self) return impossible(Protocol::pipeline, "the peer is this process");
    if (!peer.shared_memory && !peer.put && peer.eager_max == 0)
        return impossible(Protocol::pipeline, "this transport moves no data");
    const bool put = !peer.shared_memory && peer.put;
    // Host memory that rails reach has no business in slots.
    const auto may_go = [put](const End& end, Reach reach, Stage stage) {
        const bool reached = put && rails_reach(end, reach);
        return stage == Stage::direct ? reached : !reached || end.on_device();
    };
    std::optional<Candidate> best;
    for (const Stage source : {Stage::direct, Stage::slot}) {
        for (const Stage sink : {Stage::direct, Stage::slot}) {
            if (source == Stage::direct && sink == Stage::direct) continue;  // that is rdma
            if (!may_go(ask.source, ask.source_reach, source)) continue;
            if (!may_go(ask.sink, ask.sink_reach, sink)) continue;
            const Candidate candidate = pipeline_through(ask, source, sink);
            if (!best || candidate.plan.expected < best->plan.expected) best = candidate;
        }
    }
    return best ? *best : impossible(Protocol::pipeline, "nothing to stage: one put does it");
}

}  // namespace gantry::plan
