// SPDX-License-Identifier: BSD-3-Clause
//
// The point-to-point planner: one candidate per protocol, each either impossible (with a clause
// that says why) or priced by the model; the cheapest wins, ties go to the protocol with the
// smaller number. Some answers are settled without a price: a message to oneself; a host message
// within GANTRY_EAGER_LIMIT, which the limit promises to send at once; CUDA IPC from a
// GANTRY_IPC_THRESHOLD up that the user set; a message that lies in slots already.
//
// While the sink is unknown (the sender's offer) a device source expects a device sink like itself,
// a host source a host sink.
#include "plan/ask.hpp"
#include "plan/cma_candidate.hpp"
#include "plan/direct_copy.hpp"
#include "plan/ipc_candidate.hpp"
#include "plan/p2p_model.hpp"
#include "plan/bar.hpp"

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

// A lone copy into a slot, on its way to host memory. Whether a kernel stays on that GPU is not
// known; it does where messages are close to each other, and elsewhere a slot costs hardly more than
// a direct copy. By copy engine it starts before the request travels, and inside a node the stream tells
// its end: it waits for neither hop.
Nanoseconds latency_to_slot(const Ask& ask) {
    const device::GpuFacts& gpu = ask.source_gpu;
    const bool is_time_sliced = (ask.facts.same_gpu || ask.facts.gpu_shared) && gpu.queue_turn > 0;
    const bool small = gpu.resident_out_latency > 0 && ask.bytes <= kResidentUpTo &&
                       !is_time_sliced && !by_copy_engine(ask.sink) && !reads_by_bar(ask);
    const Nanoseconds hops = ask.peer.shared_memory ? 2 * ask.hop : 0;
    return small ? std::min(std::max<Nanoseconds>(gpu.copy_latency - hops, 0),
                            gpu.resident_out_latency)
                 : gpu.copy_latency;
}

Candidate self_candidate(const Ask& ask) {
    if (!ask.peer.self) return impossible(Protocol::self, "the peer is another process");
    DirectCopy copy = direct_copy(ask, ask.source_gpu.uuid == ask.sink_gpu.uuid, Executor::sender);
    if (ask.bytes == 0) copy = {0, kHostCopyRate, CopyEngine::cpu};
    Candidate candidate;
    candidate.plan = {.protocol = Protocol::self,
                      .executor = Executor::receiver,
                      .source_engine = copy.engine,
                      .sink_engine = copy.engine,
                      .expected = copy.latency + transfer_time(ask.bytes, copy.bytes_per_second),
                      .why = "both buffers are in this process: one local copy"};
    candidate.settled = true;
    return candidate;
}

// How an end is copied into or out of a slot.
CopyEngine slot_engine(const Ask& ask, const End& end) {
    if (!by_copy_engine(end)) return CopyEngine::cpu;
    if (end.contiguous) return CopyEngine::copy_engine;
    // Where two processes share the GPU a kernel would wait for its turn, and sets of rows do not.
    const bool shared = ask.facts.same_gpu || ask.facts.gpu_shared;
    const bool is_time_sliced = shared && ask.source_gpu.queue_turn > 0;
    return ask.tuning.kernels && !is_time_sliced ? CopyEngine::kernel : CopyEngine::copy_engine_2d;
}

Candidate eager_candidate(const Ask& ask) {
    if (ask.peer.self) return impossible(Protocol::eager, "the peer is this process");
    const bool empty = ask.bytes == 0;
    const bool from_device = !empty && by_copy_engine(ask.source);
    const bool by_bar = from_device && reads_by_bar(ask);
    if (from_device && !by_bar && (ask.peer.shared_memory || !ask.peer.put))
        return impossible(Protocol::eager, "the source is not in host memory");
    if (ask.bytes > eager_limit(ask.peer, ask.tuning))
        return impossible(Protocol::eager, "above GANTRY_EAGER_LIMIT");
    if (ask.bytes > ask.peer.eager_max)
        return impossible(Protocol::eager, "larger than one message of this transport");
    if (!ask.question.eager_credit)
        return impossible(Protocol::eager, "the peer holds GANTRY_EAGER_BUDGET bytes unreceived");

    Candidate candidate;
    Plan& plan = candidate.plan;
    plan = {.protocol = Protocol::eager, .why = "within GANTRY_EAGER_LIMIT: sent at once"};
    plan.expected = ask.hop + transfer_time(ask.bytes, ask.peer.bytes_per_second) +
                    transfer_time(ask.bytes, kHostCopyRate);
    if (by_bar) {
        plan.source_engine = CopyEngine::bar;
        plan.why =
            "small enough for the processor to read it through its BAR mapping: sent at once";
        plan.expected += bar_read_time(ask.source_gpu, ask.bytes);
    } else if (from_device) {
        plan.source_engine = slot_engine(ask, ask.source);
        plan.source_stage = Stage::slot;
        plan.why = "within GANTRY_EAGER_LIMIT: sent as soon as it is copied, without a verdict";
        plan.expected +=
            latency_to_slot(ask) + transfer_time(ask.bytes, ask.source_gpu.d2h_bytes_per_second);
    }
    if (!empty && writes_by_bar(ask)) {
        plan.sink_engine = CopyEngine::bar;
        plan.expected += bar_write_time(ask.sink_gpu, ask.bytes);
    } else if (!empty && by_copy_engine(ask.sink)) {
        plan.sink_engine = slot_engine(ask, ask.sink);
        plan.sink_stage = Stage::slot;
        plan.expected +=
            ask.sink_gpu.copy_latency + transfer_time(ask.bytes, ask.sink_gpu.h2d_bytes_per_second);
    }
    candidate.settled = !from_device;  // a large limit may make the pipeline the faster one
    return candidate;
}

int rails_for(const Ask& ask, Bytes piece) {
    if (ask.tuning.rail_stripe == 0) return 1;
    const Bytes useful = std::max<Bytes>(1, piece / ask.tuning.rail_stripe);
    return static_cast<int>(
        std::min<Bytes>(useful, static_cast<Bytes>(std::max(1, ask.peer.rails))));
}

// Rails read or write this end in place.
bool rails_reach(const End& end, Reach reach) {
    if (!end.contiguous || end.kind == MemoryKind::managed || reach == Reach::nothing) return false;
    return end.kind != MemoryKind::device || reach == Reach::device_memory;
}

const char* why_not_reached(const End& end, Reach reach) {
    if (end.kind == MemoryKind::managed) return "managed memory cannot be registered";
    if (reach == Reach::nothing) return "the network refused to register an end";
    return "no GPUDirect: rails do not reach device memory";
}

// Cards may read a GPU's memory more slowly than they send, and write it at another rate.
double wire_rate(const Ask& ask, Stage source, Stage sink) {
    const transport::PeerFacts& peer = ask.peer;
    double rate = peer.bytes_per_second;
    if (source == Stage::direct && ask.source.on_device() && peer.device_read_bytes_per_second > 0)
        rate = std::min(rate, peer.device_read_bytes_per_second);
    if (sink == Stage::direct && ask.sink.on_device() && peer.device_write_bytes_per_second > 0)
        rate = std::min(rate, peer.device_write_bytes_per_second);
    return rate;
}

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
    if (ask.peer.straight_from > 0) {
        const bool straight = ask.bytes >= ask.peer.straight_from;
        if (straight) plan.expected += 2 * ask.hop;
        plan.why = straight ? "one put into the receiver's buffer, by a connection of its own"
                            : "one put into the receiver's buffer, in pieces";
    }
    return candidate;
}

Leg slot_leg(const Ask& ask, CopyEngine engine, const device::GpuFacts& gpu, double engine_rate,
             Executor executor) {
    if (engine == CopyEngine::cpu) {
        double rate = ask.peer.shared_memory ? ask.peer.bytes_per_second : kHostCopyRate;
        if (ask.facts.reads == Reads::measured && ask.peer.slot_bytes_per_second > 0)
            rate = ask.peer.slot_bytes_per_second;
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
    plan.expected = pieces.expected;
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

// The cheapest of all candidates, and what it beat.
Choice best_of(const Ask& ask) {
    Candidate candidates[] = {self_candidate(ask), eager_candidate(ask),    rdma_candidate(ask),
                              ipc_candidate(ask),  pipeline_candidate(ask), cma_candidate(ask)};
    // Its sender may be done, and its buffer hold something else.
    if (ask.question.already_staged)
        for (Candidate& candidate : candidates)
            if (candidate.plan.protocol != Protocol::pipeline)
                candidate = impossible(candidate.plan.protocol, "it lies in the sender's slots");
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates) {
        if (candidate.impossible != nullptr) continue;
        if (best == nullptr || (candidate.settled && !best->settled) ||
            (candidate.settled == best->settled && candidate.plan.expected < best->plan.expected))
            best = &candidate;
    }
    GANTRY_ASSERT(best != nullptr && "every peer can be reached by active messages at least");

    Choice choice;
    choice.plan = best->plan;
    for (const Candidate& candidate : candidates) {
        if (&candidate == best) continue;
        const bool priced = candidate.impossible == nullptr;
        choice.rejected[choice.rejected_count++] = {candidate.plan.protocol,
                                                    priced ? candidate.plan.expected : 0,
                                                    priced ? candidate.lost : candidate.impossible};
    }
    return choice;
}

bool is_ipc_by(const Plan& plan, Executor executor) {
    return plan.protocol == Protocol::ipc && plan.executor == executor;
}

// The answer to the same question with other facts.
template <class Change>
Plan plan_if(const Ask& ask, Change change) {
    Question question = ask.question;
    Facts facts = ask.facts;
    change(question, facts);
    return best_of(Ask(question, facts, ask.machine, ask.tuning)).plan;
}

// On a GPU that neither end used lately: what it would save if this process were its last user.
void advise_on_time_slice(const Ask& ask, const Plan& best, Advice& advice) {
    Question question = ask.question;
    question.already_staged = false;
    question.started_chunk = 0;
    Facts facts = ask.facts;
    facts.last_user = GpuUser::receiver;
    const Ask taken(question, facts, ask.machine, ask.tuning);
    const Plan with_it = best_of(taken).plan;
    int asks_again_at = pays_at(taken, Executor::receiver, best.expected);
    if (is_ipc_by(with_it, Executor::receiver) && with_it.expected < best.expected) {
        advice.saved_by_time_slice = best.expected - with_it.expected;
        // With each message the mapping that is to be opened costs less.
        if (!facts.ipc_open) asks_again_at = facts.uses + 1 + facts.uses / 8;
    }
    advice.source_pays_at = std::min(advice.source_pays_at, asks_again_at);
}

// Of a verdict, where the two ends could copy directly.
Advice advice_for(const Ask& ask, const Plan& chosen) {
    Advice advice;
    const auto as_sent = [](Question& question, Facts&) {
        question.already_staged = false;
        question.started_chunk = 0;
    };
    // What would be best, wherever the bytes lie by now.
    const Plan best = ask.question.already_staged ? plan_if(ask, as_sent) : chosen;
    advice.direct_next = best.protocol == Protocol::ipc;
    if (best.protocol == Protocol::ipc)
        advice.opens =
            best.executor == Executor::receiver ? !ask.facts.ipc_open : !ask.facts.put_open;
    if (is_ipc_by(chosen, Executor::receiver) && !ask.is_time_sliced()) {
        const Plan with_rtr =
            plan_if(ask, [](Question&, Facts& facts) { facts.rtr = facts.put_open = true; });
        advice.rtr_pays = is_ipc_by(with_rtr, Executor::sender);
    }
    if (best.protocol == Protocol::ipc) {
        // What a get takes longer alone counts against puts after an RTR only (ipc_candidate.cpp).
        const Nanoseconds alone = ask.facts.rtr ? 0 : ask.sink_gpu.peer_get_more;
        // Pending work does not count when one of the two is preferred, either.
        Facts facts = ask.facts;
        facts.sender_busy = facts.receiver_busy = false;
        const Ask idle(ask.question, facts, ask.machine, ask.tuning);
        if (best.executor == Executor::receiver)
            advice.sink_pays_at = pays_at(idle, Executor::sender, best.expected - alone);
        else
            advice.source_pays_at = pays_at(idle, Executor::receiver, best.expected + alone);
        return advice;
    }
    advice.source_pays_at = pays_at(ask, Executor::receiver, best.expected);
    advice.sink_pays_at = pays_at(ask, Executor::sender, best.expected);
    if (!ask.facts.descriptor) {
        Question question = ask.question;
        Facts facts = ask.facts;
        as_sent(question, facts);
        facts.descriptor = true;
        const Ask with_it(question, facts, ask.machine, ask.tuning);
        advice.wants_descriptor = is_ipc_by(best_of(with_it).plan, Executor::receiver);
        if (!advice.wants_descriptor)
            advice.source_pays_at = pays_at(with_it, Executor::receiver, best.expected);
    }
    if (ask.is_time_sliced() && ask.facts.last_user == GpuUser::unknown)
        advise_on_time_slice(ask, best, advice);
    return advice;
}

}  // namespace

Choice choose(const Question& question, const Facts& facts, const Machine& machine,
              const Tuning& tuning) {
    const Ask ask(question, facts, machine, tuning);
    Choice choice = best_of(ask);
    const bool may_be_direct = question.sink_known && ask.peer.shared_memory && tuning.ipc &&
                               (by_copy_engine(ask.source) || by_copy_engine(ask.sink));
    if (may_be_direct) choice.advice = advice_for(ask, choice.plan);
    return choice;
}

}  // namespace gantry::plan
