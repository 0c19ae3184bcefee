// SPDX-License-Identifier: BSD-3-Clause
#include "p2p/verdict.hpp"

#include "p2p/bar_copies.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::p2p {
namespace {

using device::IpcKind;

// Which of the two processes used the GPU last.
plan::GpuUser last_user(transfer::Context& context, const wire::Rts& rts, int gpu) {
    const Nanoseconds mine = context.arbiter.shared(gpu).used();
    const auto its = static_cast<Nanoseconds>(rts.gpu_used);
    if (mine == 0 && its == 0) return plan::GpuUser::unknown;
    return its > mine ? plan::GpuUser::sender : plan::GpuUser::receiver;
}

// On a GPU that neither used lately: shall this process take it from now on?
bool takes_the_gpu(transfer::Context& context, const Asked& asked, const plan::Advice& advice) {
    if (advice.saved_by_time_slice <= 0) return false;
    const int gpu = asked.receive.location.gpu;
    return context.arbiter.shared(gpu).invest(advice.saved_by_time_slice,
                                              context.gpu(gpu).queue_turn, context.executor.now());
}

// Not the id of an allocation: memory of ours on that GPU, into which strided blocks are packed.
constexpr std::uint64_t kPacked = std::uint64_t{1} << 63;

// Where a sender would put the message.
device::Location put_sink(const Asked& asked) {
    device::Location sink = asked.receive.location;
    if (asked.whole.contiguous != 0 || asked.receive.buffer.contiguous() || !sink.on_device())
        return sink;
    sink.buffer_id = packed_puts(sink);
    sink.ipc = IpcKind::legacy;
    return sink;
}

// Of a message whose sender offers to be read: a read that measures is made whatever is known.
plan::Reads reads_of_offer(transfer::Context& context, const Asked& asked) {
    const plan::Reads known = context.host_reads.from(asked.from).reads;
    const bool measures = asked.whole.measures_read != 0 && known != plan::Reads::refused;
    return measures ? plan::Reads::trial : known;
}

}  // namespace

std::uint64_t packed_puts(const device::Location& sink) {
    return kPacked | static_cast<std::uint64_t>(std::max(sink.gpu, 0));
}

int copying_gpu(transfer::Context& context, const device::Location& sink,
                const device::Uuid& source_gpu) {
    const bool on_device =
        sink.kind == device::MemoryKind::device || sink.kind == device::MemoryKind::managed;
    return on_device ? sink.gpu : std::max(context.device.gpu_of(source_gpu), 0);
}

void gather(transfer::Context& context, const Asked& asked, Verdict& verdict) {
    const wire::Rts& rts = asked.whole;
    plan::Question& question = verdict.question;
    question.bytes = asked.accepted;
    question.source.kind = static_cast<device::MemoryKind>(rts.source_kind);
    question.source.contiguous = rts.contiguous != 0;
    question.sink = transfer::end_of(asked.receive.location, asked.receive.buffer);
    question.sink_known = true;
    question.synchronous = rts.synchronous != 0;
    question.eager_credit = false;
    question.awaited = wire::offers_read(rts.offer);  // else it would have come at once
    if (asked.all_ahead()) {
        question.already_staged = true;
        question.started_chunk = asked.offer().chunk;
    }

    const device::Uuid& source_gpu = rts.handle.gpu;
    const bool source_on_device = question.source.on_device();
    plan::Facts& facts = verdict.facts;
    facts = context.facts_for(asked.from, asked.receive.location, false,
                              source_on_device ? &source_gpu : nullptr);
    facts.exposed = wire::exposes(rts.offer) && asked.accepted == asked.own.envelope.bytes;
    if (!source_on_device && !asked.receive.location.on_device())
        facts.rates = context.host_reads.from(asked.from).rates;
    if (wire::offers_read(rts.offer)) facts.reads = reads_of_offer(context, asked);
    facts.source_reach = static_cast<plan::Reach>(rts.source_reach);
    // Blocks of several allocations are no launch.
    const bool can_pack = question.source.contiguous || rts.handle.buffer_id != 0;
    facts.sender_opens = rts.uses_driver != 0 && can_pack && !asked.from.memory.is_kept_away();
    facts.receiver_opens =
        source_on_device && context.device.active() &&
        context.device.reaches(copying_gpu(context, asked.receive.location, source_gpu),
                               source_gpu);
    look_at_mappings(context, asked, verdict);
    if (source_on_device && context.is_time_sliced(facts))
        facts.last_user = last_user(context, rts, asked.receive.location.gpu);
    facts.sink_bar = asked.receive.location.on_device() && asked.receive.buffer.contiguous() &&
                     wants_sink_bar(context, question, facts, asked.receive.location,
                                    asked.receive.buffer.data());
}

void look_at_mappings(transfer::Context& context, const Asked& asked, Verdict& verdict) {
    plan::Question& question = verdict.question;
    plan::Facts& facts = verdict.facts;
    const transfer::RemoteMemory& memory = asked.from.memory;
    const device::Location sink = put_sink(asked);
    question.sink.ipc = sink.ipc;
    question.source.ipc = asked.whole.handle.kind;
    if (question.source.ipc != IpcKind::none && facts.receiver_opens) {
        const device::IpcHandle& source = asked.whole.handle;
        const device::Access access =
            context.device.access(source, copying_gpu(context, sink, source.gpu));
        facts.ipc_open = access == device::Access::open;
        facts.descriptor = access != device::Access::no_descriptor;
        if (!facts.ipc_open) {
            facts.uses = memory.gets_staged(source.buffer_id);
            facts.receiver_first = context.device.opens_first(
                source.kind, copying_gpu(context, sink, source.gpu), source.gpu);
            facts.source_large = source.size >= plan::kLargeMapping;
        }
        if (access == device::Access::never) question.source.ipc = IpcKind::none;
    }
    facts.receiver_busy = !facts.ipc_open && context.device.pending();
    facts.put_open = memory.is_put_open(sink.buffer_id);
    if (facts.put_open || sink.ipc == IpcKind::none) return;
    facts.put_uses = memory.puts_staged(sink.buffer_id);
    facts.sender_busy = asked.whole.busy != 0;
    // Whether it has opened what it was told of, only it knows.
    facts.sender_first = !facts.same_gpu && !context.anchors.told(asked.from.rank);
    facts.sink_large = sink.size >= plan::kLargeMapping;
    const bool needs_descriptor = sink.ipc == IpcKind::vmm || sink.ipc == IpcKind::pool;
    if (memory.is_put_refused(sink.buffer_id) || (needs_descriptor && asked.whole.inbox == 0))
        question.sink.ipc = IpcKind::none;
}

const plan::Selection& decide(transfer::Context& context, const Asked& asked, Verdict& verdict) {
    const plan::Selection* selection = &context.selections.select(verdict.question, verdict.facts);
    if (verdict.facts.cold_slots && selection->advice().opens) context.pools.did_without();
    if (takes_the_gpu(context, asked, selection->advice())) {
        verdict.facts.last_user = plan::GpuUser::receiver;
        selection = &context.selections.select(verdict.question, verdict.facts);
    }
    verdict.choice = selection->choice;
    const plan::Advice& advice = selection->advice();
    verdict.direct_next = advice.direct_next ? asked.whole.handle.buffer_id : 0;
    verdict.wants_descriptor = advice.wants_descriptor;
    if (!advice.direct_next || verdict.question.already_staged)
        asked.from.memory.staged(asked.whole.handle, put_sink(asked),
                                 {verdict.facts.ipc_open, verdict.facts.put_open});
    return *selection;
}

plan::SelectionCache::Hint hint_of_verdict(const transfer::Context& context, const Asked& asked) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15u;
    const device::Location& sink = asked.receive.location;
    std::uint64_t gpu = 0;
    std::memcpy(&gpu, asked.whole.handle.gpu.data(), sizeof gpu);
    plan::SelectionCache::Hint hint{asked.from.hint_word(), gpu, asked.own.envelope.bytes, 0};
    if (asked.own.slot_flag.number == 0) {
        hint.allocation ^= asked.whole.handle.buffer_id * kSpread + sink.buffer_id;
        hint.ends = static_cast<std::uint64_t>(plan::HintKind::verdict_on_get);
        return hint;
    }
    hint.ends = static_cast<std::uint64_t>(plan::HintKind::verdict_by_flags) |
                static_cast<std::uint64_t>(asked.whole.handle.kind) << 8 |
                static_cast<std::uint64_t>(sink.ipc) << 16 |
                static_cast<std::uint64_t>(static_cast<std::uint16_t>(sink.gpu)) << 24 |
                static_cast<std::uint64_t>(asked.whole.busy) << 40 |
                static_cast<std::uint64_t>(context.device.pending()) << 41 |
                static_cast<std::uint64_t>(asked.own.slot_flag.cuts_through) << 42 |
                static_cast<std::uint64_t>(asked.whole.offer.chunk / transfer::kDeviceSlotUnit)
                    << 43;
    return hint;
}

bool may_be_hinted(transfer::Context& context, const Verdict& verdict) {
    return !verdict.facts.same_gpu && !context.device.has_bar_mapping({}, nullptr, 0);
}

plan::Selection* known_verdict(transfer::Context& context, const Asked& asked,
                               const plan::SelectionCache::Hint& hint) {
    plan::Selection* const known = context.selections.known(hint);
    if (known == nullptr || asked.own.slot_flag.number == 0) return known;
    // It is staged as long as opening a mapping does not pay.
    transfer::RemoteMemory& memory = asked.from.memory;
    const device::Location& sink = asked.receive.location;
    const wire::Handle& source = asked.whole.handle;
    const bool source_closed =
        source.kind == device::IpcKind::none ||
        (memory.gets_staged(source.buffer_id) < known->advice().source_pays_at &&
         context.device.access(source, sink.gpu) ==
             (known->facts.descriptor ? device::Access::closed : device::Access::no_descriptor));
    const bool sink_closed =
        sink.ipc == device::IpcKind::none ||
        (!memory.is_put_open(sink.buffer_id) && !memory.is_put_refused(sink.buffer_id) &&
         memory.puts_staged(sink.buffer_id) < known->advice().sink_pays_at);
    if (!source_closed || !sink_closed) return nullptr;
    memory.staged(source, sink, {});
    return known;
}

}  // namespace gantry::p2p
