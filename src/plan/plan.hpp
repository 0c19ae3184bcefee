// SPDX-License-Identifier: BSD-3-Clause
//
// What the planner answers, and the planner itself: `choose` is a pure function and nothing else
// decides. The sender asks with the sink unknown and sends the answer as its offer in
// the RTS; the receiver, who sees both ends, asks again and returns the verdict in the CTS.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"
#include "plan/question.hpp"

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::plan {

// Numbers are on the wire (docs/wire.md): append only.
enum class Protocol : std::uint8_t {
    self = 0,   // both ends in this process: one local copy
    eager = 1,  // the payload travels with the envelope
    rdma =
        2,    // zero copy: one put into the receiver's buffer, or exposed to it (receiver executes)
    ipc = 3,  // one side copies directly from or to the other's device memory
    pipeline = 4,  // chunks: source stage, wire, sink stage
    cma = 5,       // the receiver reads the sender's host memory (cross-memory attach)
};

enum class Executor : std::uint8_t {
    sender = 0,
    receiver = 1
};  // who issues the copy of an ipc plan, or moves the bytes of an rdma plan
enum class CopyEngine : std::uint8_t {
    cpu = 0,
    copy_engine = 1,
    copy_engine_2d = 2,
    kernel = 3,
    fused = 4,  // copy engine, or one kernel or call with those that come while some are in flight
    bar = 5,    // the processor, through a BAR mapping of device memory (GDRCopy)
};
inline bool is_copy_engine(CopyEngine engine) {
    return engine == CopyEngine::copy_engine || engine == CopyEngine::copy_engine_2d;
}
enum class Completion : std::uint8_t { event = 0, flag = 1 };  // how the end of a copy is seen
enum class Stage : std::uint8_t {
    direct = 0,
    slot = 1
};  // straight from/to the user's buffer, or through a staging slot

struct Plan {
    Protocol protocol = Protocol::eager;
    Executor executor = Executor::receiver;
    CopyEngine source_engine = CopyEngine::cpu;
    CopyEngine sink_engine = CopyEngine::cpu;
    Stage source_stage = Stage::direct;
    Stage sink_stage = Stage::direct;
    Completion completion = Completion::event;
    Bytes chunk = 0;  // bytes of one piece (pipeline)
    int depth = 1;    // pieces in flight at most
    int ahead = 0;    // pieces copied to slots before the verdict is known
    int rails = 1;
    Nanoseconds expected = 0;  // the model's time for the whole message
    Nanoseconds opening = 0;   // of it, the share of a mapping that must be opened first
    const char* why = "";      // one clause: why this one
    bool operator==(const Plan&) const = default;
};

// A candidate that lost, and why: what `gantry explain` prints.
struct Rejected {
    Protocol protocol;
    Nanoseconds expected;  // 0: not possible at all
    const char* why;
};

// What else follows from a question than its plan: what would change the answer, and what the two
// ends do for messages to come.
struct Advice {
    // So many staged messages of the source's allocation (or into the sink's) repay opening it.
    int source_pays_at = kNever, sink_pays_at = kNever;
    // The message is staged, but copying it directly would be better: the sender need not copy the
    // next one of this allocation to slots.
    bool direct_next = false;
    bool opens = false;             // the plan opens a mapping, for this allocation alone
    bool wants_descriptor = false;  // the receiver would read the source, had it the descriptor
    bool rtr_pays = false;          // a put would be better if the receiver sent an RTR
    // What reading the source would save if this process had used the time-sliced GPU last.
    Nanoseconds saved_by_time_slice = 0;
    static constexpr int kNever = std::numeric_limits<int>::max();
    bool operator==(const Advice&) const = default;
};

struct Choice {
    Plan plan;
    Advice advice;
    Rejected rejected[5];
    int rejected_count = 0;
    bool measures = false;  // it is made to learn what a way costs, not because it is the fastest
};

// From these sizes up the processor's copies between a user's buffer and a device's slots go past
// the cache. Out of a slot: the message is larger than the cache's share, and plain copies only
// empty it. Into one: the next to read it is a copy engine, and lines that lie in this core's cache
// hold it up (H200: 64 KiB to the device 12.6 us, 14.2 by plain copies).
inline constexpr Bytes kStreamedFrom = 2 * kMiB;
inline constexpr Bytes kStreamedIntoSlotsFrom = 64 * kKiB;
// From here up what arrived for a device waits in a page-locked slot: a copy from pageable memory
// took 8.4 us at 16 KiB and 16.2 at 64 KiB on an H200, from page-locked memory 8.5 and 8.4.
inline constexpr Bytes kKeptInSlotsFrom = 32 * kKiB;

// From here up a message whose receiver is known to wait may be read by it although it could be sent at once.
inline constexpr Bytes kAwaitedReadsFrom = 8 * kKiB;

// Mechanisms that make messages faster and change no result (GANTRY_MECHANISMS): with all of them off
// everything works, slower.
struct Mechanisms {
    bool selection_cache = true;  // the planner's answers are kept (plan/selection_cache.hpp)
    bool rts_templates = true;    // an RTS says no more than what differs from the last one
    bool one_copy = true;         // a message that is one copy needs no coroutine
    bool notify_flags = true;     // flags beside slots tell of staged pieces
    bool cut_through = true;      // staged messages go on piece by piece while a kernel copies them
    bool anchors = true;          // one small mapping of each GPU that messages go to stays open
    bool ready_to_receive = true;  // a blocking receive tells its sender where the bytes go
    bool batches = true;           // copies that come together are made by one launch or call
    bool node_segment =
        true;  // ranks of a node agree on its node segment instead of by messages (all or none of them)
    bool claims = true;  // who is not late copies what either end could
    bool cma = true;     // a receiver reads host memory of its node itself, where that is faster
    bool operator==(const Mechanisms&) const = default;
};
// What a list such as "all" or "none" or "all,-claims" or "none,batches" switches on; an error names the
// word that is none of them.
Result<Mechanisms> mechanisms_from(std::string_view list);

// What the user or `gantry tune` fixed; the rest is chosen from Facts.
struct Tuning {
    Bytes eager_limit = 0;  // 0: what the way to the peer is best served with
    Bytes chunk = 0;        // 0: from rates and per-chunk cost
    int depth = 0;          // 0: likewise
    bool ipc = true;
    Bytes ipc_threshold = 0;  // 0: where the model says it wins
    Bytes cma_threshold = 0;  // 0: where measurements say it wins
    bool kernels = true;
    Bytes host_cell = 64 * kKiB;
    Bytes host_pool = 4 * kMiB;
    Bytes device_pool = 16 * kMiB;
    Bytes rail_stripe = 64 * kKiB;  // no put is divided among rails into smaller parts; 0: none is
    Mechanisms mechanisms;
};
Tuning tuning_from(const config::Config& config);

Choice choose(const Question& question, const Facts& facts, const Machine& machine,
              const Tuning& tuning);

inline Bytes eager_limit(const transport::PeerFacts& peer, const Tuning& tuning) {
    return tuning.eager_limit != 0 ? tuning.eager_limit : peer.eager_limit;
}
// Whether a receiver may want its peer to put: then the offer comes with a claim word. `gantry
// tune` finds gets a few per cent slower than puts where they are alike.
inline bool gets_are_slow(const device::GpuFacts& gpu) {
    constexpr double kSlow = 0.9;
    return gpu.peer_get_bytes_per_second > 0 &&
           gpu.peer_get_bytes_per_second < kSlow * gpu.peer_bytes_per_second;
}
// The largest contiguous host message that `choose` sends eagerly to that peer: lets the
// small-message path skip the question.
inline Bytes host_eager_limit(const transport::PeerFacts& peer, const Tuning& tuning) {
    const Bytes limit = eager_limit(peer, tuning);
    return limit < peer.eager_max ? limit : peer.eager_max;
}

std::string_view name(Protocol protocol);
std::string_view name(Executor executor);
// One line: "pipeline, 16 chunks of 256 KiB, depth 4, copy engine -> slot -> copy engine, 1 rail
// (the link is slower than the copies)".
std::string describe(const Plan& plan, Bytes bytes);

}  // namespace gantry::plan
