// SPDX-License-Identifier: BSD-3-Clause
//
// One direct copy by either process, through memory that the other one shares (CUDA IPC): what stands in its
// way, what it costs with the opening that it needs, and who makes it.
//
// Of strided ends in device memory a kernel makes the copy, at the end that only its own process knows:
// the sender packs its blocks into the receiver's memory, the receiver unpacks out of the sender's.
// Where both ends are strided the sender packs into memory of the receiver's GPU that is Gantry's
// own, and the receiver unpacks it there.
#include "plan/ipc_candidate.hpp"

#include "plan/direct_copy.hpp"
#include "plan/p2p_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

using device::IpcKind;

// An opening that costs no more than some staged messages is risked for an allocation that comes again:
// each time that it came it is expected to come so many times more. At most this is lost, once for each
// allocation.
constexpr Nanoseconds kRisked = 200 * kMicrosecond;
constexpr int kRepeats = 16;

// Opening a mapping while device work is pending stalls that work, too.
constexpr int kBusyOpening = 2;

// Why kernels cannot take the blocks of a strided end straight through a mapping, or null.
const char* strided_obstacle(const Ask& ask) {
    if (ask.contiguous()) return nullptr;
    if (!ask.tuning.kernels || !ask.source.on_device() || !ask.sink.on_device())
        return "an end is not contiguous";
    const bool shared = ask.facts.same_gpu || ask.facts.gpu_shared;
    return shared && ask.source_gpu.queue_turn > 0
               ? "an end is not contiguous, and a kernel waits for its turn of the shared GPU"
               : nullptr;
}

// A strided source whose receiver asked for it: it is to be packed once the sink is known.
bool will_be_packed(const Ask& ask) {
    return !ask.question.sink_known && !ask.source.contiguous && ask.facts.ipc_open;
}

// Why no process could make one direct copy, or null.
const char* ipc_obstacle(const Ask& ask) {
    if (ask.peer.self) return "the peer is this process";
    if (!by_copy_engine(ask.source) && !by_copy_engine(ask.sink)) return "no end is on a device";
    if (!ask.peer.shared_memory) return "the peer is on another node";
    if (!ask.tuning.ipc) return "GANTRY_IPC is off";
    if (ask.bytes < ask.tuning.ipc_threshold) return "below GANTRY_IPC_THRESHOLD";
    if (const char* strided = strided_obstacle(ask)) return strided;
    const bool exportable = will_be_packed(ask) || ask.source.ipc != IpcKind::none ||
                            (ask.question.sink_known && ask.sink.ipc != IpcKind::none);
    if (!exportable) return "the driver cannot share this memory between processes";
    if (by_copy_engine(ask.source) && by_copy_engine(ask.sink) && !ask.facts.same_gpu &&
        !ask.facts.peer_access)
        return ask.facts.kept_away
                   ? "the driver keeps the other rank's GPU from this process, which "
                     "does not see it"
               : ask.question.sink_known ? "the GPUs do not reach each other"
                                         : "the receiver has not asked for this memory yet";
    return nullptr;
}

int repeats_of(Nanoseconds price) {
    return price <= kRisked ? kRepeats : 1;
}

// What opening the other process's memory counts as. It is an investment: the messages of the same
// allocation share its price, and who came n times is expected n times more, or kRepeats * n times.
Nanoseconds opening_when_idle(const Ask& ask, Executor executor) {
    const bool gets = executor == Executor::receiver;
    if (gets ? ask.facts.ipc_open : ask.facts.put_open || will_be_packed(ask)) return 0;
    const End& end = gets ? ask.source : ask.sink;
    const device::GpuFacts& gpu = gets ? ask.source_gpu : ask.sink_gpu;
    const bool other_gpu =
        by_copy_engine(ask.source) && by_copy_engine(ask.sink) && !ask.facts.same_gpu;
    Nanoseconds price = other_gpu ? gpu.ipc_open_peer : gpu.ipc_open;
    if (end.ipc == IpcKind::vmm) price = gpu.vmm_open;
    if (end.ipc == IpcKind::pool) price = other_gpu ? gpu.pool_open_peer : gpu.pool_open;
    if (other_gpu && (gets ? ask.facts.receiver_first : ask.facts.sender_first)) {
        // An anchor follows the first message of a process, whichever way that goes.
        const bool follows = ask.facts.cold_slots && ask.tuning.mechanisms.anchors;
        price += (follows ? 0 : gpu.ipc_pair) + (end.ipc == IpcKind::pool ? gpu.pool_first : 0);
    }
    if (other_gpu && (gets ? ask.facts.source_large : ask.facts.sink_large))
        price += gpu.ipc_open_large;
    const int uses = gets ? ask.facts.uses : ask.facts.put_uses;
    return price / (1 + Nanoseconds{uses} * repeats_of(price));
}

Nanoseconds opening(const Ask& ask, Executor executor) {
    const bool gets = executor == Executor::receiver;
    const bool busy = gets ? ask.facts.receiver_busy : ask.facts.sender_busy;
    return opening_when_idle(ask, executor) * (busy ? kBusyOpening : 1);
}

// Whether such copies go together, if several come so.
bool shares_calls(const Ask& ask, bool gets) {
    if (ask.bytes <= device::kMostFused && ask.tuning.kernels) return true;
    return gets && !ask.facts.same_gpu && ask.bytes <= device::kMostInOneCall;
}

Candidate ipc_by(const Ask& ask, Executor executor) {
    const bool gets = executor == Executor::receiver;
    const bool from_gpu = by_copy_engine(ask.source), to_gpu = by_copy_engine(ask.sink);
    if (gets && !ask.source.contiguous)
        return impossible(Protocol::ipc, "only the sender knows where its blocks lie");
    if (!gets && ask.source.contiguous && !ask.sink.contiguous)
        return impossible(Protocol::ipc, "only the receiver knows where its blocks lie");
    if (gets ? ask.source.ipc == IpcKind::none
             : !will_be_packed(ask) && (!ask.question.sink_known || ask.sink.ipc == IpcKind::none))
        return impossible(Protocol::ipc, "the driver cannot share this memory between processes");
    if (!gets && ask.question.sender_absent)
        return impossible(Protocol::ipc, "the sender did not come to copy");
    if (gets ? !ask.facts.receiver_opens : !ask.facts.sender_opens)
        return impossible(Protocol::ipc,
                          "the process that would copy does not use the driver, or it keeps the "
                          "GPU from that process");

    if (gets && !ask.facts.descriptor)
        return impossible(Protocol::ipc, "the descriptor of the sender's memory has not come yet");

    DirectCopy copy = direct_copy(ask, ask.facts.same_gpu, executor);
    const device::GpuFacts& gpu = from_gpu ? ask.source_gpu : ask.sink_gpu;
    Candidate candidate;
    Nanoseconds price = copy.latency + transfer_time(ask.bytes, copy.bytes_per_second);
    const bool packs = !ask.source.contiguous, unpacks = !ask.sink.contiguous;
    if (packs && unpacks)
        price += ask.sink_gpu.kernel_latency +
                 transfer_time(ask.bytes, ask.sink_gpu.d2d_bytes_per_second);
    if (from_gpu && to_gpu && ask.facts.same_gpu && ask.turn(executor) > 0) {
        price += ask.turn(executor);
        candidate.lost = "a copy inside a shared GPU waits for a turn of its compute queue";
    }
    // The sender's process is a second user of the receiver's GPU: the two-row form stays off the
    // compute queue.
    if (!from_gpu && ask.bytes < gpu.turns_below(ask.source.kind))
        copy.engine = CopyEngine::copy_engine_2d;
    if (const Nanoseconds investment = opening(ask, executor); investment > 0) {
        price += investment;
        candidate.lost = "opening the peer's memory costs more than it saves";
    }
    if (from_gpu && to_gpu && copy.engine == CopyEngine::copy_engine &&
        ask.tuning.mechanisms.batches && shares_calls(ask, gets))
        copy.engine = CopyEngine::fused;
    Nanoseconds event = gpu.host_event_seen;
    if (from_gpu && to_gpu) event = ask.facts.same_gpu ? gpu.d2d_event_seen : gpu.event_seen;
    // The flag of a put after an RTR tells the receiver, too, and writing it is hidden by its bytes
    // (docs/design/ready-to-receive.md).
    if (!gets && ask.facts.rtr) event += ask.hop + transfer_time(ask.bytes, copy.bytes_per_second);
    Plan& plan = candidate.plan;
    plan = {.protocol = Protocol::ipc,
            .executor = executor,
            .source_engine = copy.engine,
            .sink_engine = copy.engine,
            .completion = seen_by(gpu, event),
            .opening = opening(ask, executor)};
    // A get starts when the offer arrives; a put after the verdict, or at once into the
    // buffer that an RTR named, and its end must be told.
    const bool answered = !gets && !ask.facts.rtr;
    plan.expected = (answered ? 3 : 1) * ask.hop + (answered ? 2 * kPieceHandling : 0) + price;
    if (packs && unpacks)
        plan.why = "packed by a kernel into memory of the receiver's GPU, and unpacked there";
    else if (packs)
        plan.why = "packed by one kernel straight into the receiver's device memory";
    else if (unpacks)
        plan.why = "unpacked by one kernel straight out of the sender's device memory";
    else if (from_gpu && to_gpu)
        plan.why = ask.facts.same_gpu ? "one copy inside the GPU that both processes use"
                   : !gets && ask.facts.rtr
                       ? "one copy between the GPUs, into the buffer that the receiver's RTR named"
                       : "one copy between the GPUs";
    else
        plan.why = gets ? "one copy straight out of the sender's device memory"
                        : "one copy straight into the receiver's device memory";
    // Without its sender a message cannot be staged.
    candidate.settled = ask.tuning.ipc_threshold > 0 || ask.question.sender_absent;
    return candidate;
}

}  // namespace

int pays_at(const Ask& ask, Executor executor, Nanoseconds staged) {
    if (ipc_obstacle(ask) != nullptr) return Advice::kNever;
    const Candidate direct = ipc_by(ask, executor);
    const Nanoseconds now = opening(ask, executor);
    const int used = executor == Executor::receiver ? ask.facts.uses : ask.facts.put_uses;
    if (direct.impossible != nullptr || now == 0) return Advice::kNever;
    const Nanoseconds saved = staged - (direct.plan.expected - now);
    if (saved < 0) return Advice::kNever;
    Facts unused = ask.facts;
    unused.uses = unused.put_uses = 0;
    const Ask first(ask.question, unused, ask.machine, ask.tuning);
    const Nanoseconds repeats = repeats_of(opening_when_idle(first, executor));
    // The share of the (n + 1)-th message is price / (1 + repeats * n).
    const Nanoseconds at = std::min<Nanoseconds>(
        (opening(first, executor) / (saved + 1) + repeats - 1) / repeats, Advice::kNever - 1);
    // Where the other executor keeps this one from being chosen, asking again and again is in vain.
    return at > used ? static_cast<int>(at) : used + 1 + used / 8;
}

Candidate ipc_candidate(const Ask& ask) {
    if (const char* obstacle = ipc_obstacle(ask)) return impossible(Protocol::ipc, obstacle);
    const Candidate get = ipc_by(ask, Executor::receiver);
    const Candidate put = ipc_by(ask, Executor::sender);
    if (get.impossible != nullptr) return put.impossible != nullptr ? get : put;
    if (put.impossible != nullptr) return get;
    // What a get takes longer alone counts against a put after an RTR, and against no other: in a
    // window latencies overlap, and a put that is answered needs its sender's attention, too.
    const Nanoseconds alone = ask.facts.rtr ? 0 : ask.sink_gpu.peer_get_more;
    // Whoever opens will copy from then on: that one of them has work pending puts it off, and is no
    // reason to have the other do it.
    const auto when_idle = [&ask](const Candidate& candidate) {
        const Executor executor = candidate.plan.executor;
        return candidate.plan.expected - opening(ask, executor) + opening_when_idle(ask, executor);
    };
    return when_idle(put) + alone < when_idle(get) ? put : get;
}

}  // namespace gantry::plan
