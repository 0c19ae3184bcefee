// SPDX-License-Identifier: BSD-3-Clause
//
// What the point-to-point planner works with: one message with everything derived from it, and a
// way that it could take.
#pragma once

#include "plan/plan.hpp"
#include "plan/question.hpp"

namespace gantry::plan {

using device::MemoryKind;

struct Candidate {
    Plan plan;
    const char* impossible = nullptr;
    const char* lost = "slower";  // what to say if it loses
    bool settled = false;         // wins without comparing prices
};

inline Candidate impossible(Protocol protocol, const char* why) {
    Candidate candidate;
    candidate.plan.protocol = protocol;
    candidate.impossible = why;
    return candidate;
}

// Managed memory is copied like device memory: a host copy would drag its pages over.
inline bool by_copy_engine(const End& end) {
    return end.kind == MemoryKind::device || end.kind == MemoryKind::managed;
}
inline bool in_host_memory(const End& end) {
    return !by_copy_engine(end);
}

// One message and everything derived from it once.
struct Ask {
    const Question& question;
    const Facts& facts;
    const Machine& machine;
    const Tuning& tuning;
    End source, sink;
    const transport::PeerFacts& peer;
    const device::GpuFacts& source_gpu;
    const device::GpuFacts& sink_gpu;
    Reach source_reach, sink_reach;
    bool source_bar, sink_bar;
    Bytes bytes;
    Nanoseconds hop;  // an empty message, one way

    Ask(const Question& q, const Facts& f, const Machine& m, const Tuning& t)
        : question(q),
          facts(f),
          machine(m),
          tuning(t),
          source(q.source),
          sink(q.sink),
          peer(m.network(f.network)),
          source_gpu(m.gpu(f.source_gpu)),
          sink_gpu(m.gpu(q.sink_known ? f.sink_gpu : f.source_gpu)),
          source_reach(f.source_reach),
          sink_reach(f.sink_reach),
          source_bar(f.source_bar),
          sink_bar(f.sink_bar),
          bytes(q.bytes),
          hop(peer.message_latency) {
        if (q.sink_known) return;
        if (!q.sink_expected) sink = source;
        sink.contiguous = true;
        sink_bar = source_bar;
        sink_reach = source_reach == Reach::nothing ? Reach::host_memory : source_reach;
    }

    // Both ends share a GPU whose compute queue goes from one process to the other at a price.
    bool is_time_sliced() const { return plan::is_time_sliced(facts, machine); }
    bool contiguous() const { return source.contiguous && sink.contiguous; }
    // What an operation on the compute queue of a GPU that both processes share costs before it
    // starts.
    Nanoseconds turn(Executor executor) const {
        if (!facts.same_gpu) return 0;
        const GpuUser self = executor == Executor::sender ? GpuUser::sender : GpuUser::receiver;
        return facts.last_user == self ? 0 : source_gpu.queue_turn;
    }
};

// What slots cost before the first of them can be used. It counts between devices, where the other
// way is the faster one for good; to and from host memory slots are.
inline Nanoseconds slots_to_lock(const Ask& ask) {
    constexpr int kProcesses = 2;
    const bool counts = by_copy_engine(ask.source) && by_copy_engine(ask.sink);
    return ask.facts.cold_slots && counts ? kProcesses * ask.source_gpu.page_lock : 0;
}

// Header, credit and bookkeeping of one piece, on either side.
inline constexpr Nanoseconds kPieceHandling = 300;

// How the end of a copy that is alone is seen best, by what it costs to see its event. On an H200 a
// flag costs 1.2 us more than an event behind a copy to another GPU; behind one inside a GPU that
// processes share by MPS or to and from host memory, half a microsecond less or more.
inline Completion seen_by(const device::GpuFacts& gpu, Nanoseconds event) {
    return gpu.flag_write < event ? Completion::flag : Completion::event;
}

}  // namespace gantry::plan
