// SPDX-License-Identifier: BSD-3-Clause
#include "plan/eager_candidate.hpp"

#include "plan/bar.hpp"
#include "plan/direct_copy.hpp"
#include "plan/p2p_model.hpp"
#include "plan/slot_copies.hpp"

namespace gantry::plan {

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
    const HostRates& rates = ask.facts.rates;
    plan.expected = ask.hop +
                    transfer_time(ask.bytes, rates.slots != 0 ? rates.slot_bytes_per_second()
                                                              : ask.peer.bytes_per_second) +
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
    // A large limit may make the pipeline the faster one; a receiver that waits may measure a read.
    const bool measures = ask.question.awaited && ask.facts.reads == Reads::trial;
    candidate.settled = !from_device && !measures;
    return candidate;
}

}  // namespace gantry::plan
