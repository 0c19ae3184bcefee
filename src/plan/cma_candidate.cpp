// SPDX-License-Identifier: BSD-3-Clause
//
// A large host message inside a node that its receiver reads straight out of the sender's memory
// (docs/design/single-copy.md): one copy by one processor beside two copies by two. Which one takes less
// time depends on the kernel and the machine, so both are measured before one is preferred.
#include "plan/cma_candidate.hpp"

#include "plan/p2p_model.hpp"

namespace gantry::plan {
namespace {

const char* obstacle(const Ask& ask) {
    if (ask.peer.self) return "the peer is this process";
    if (!ask.peer.shared_memory) return "the peer is on another node";
    if (ask.source.kind != MemoryKind::host || ask.sink.kind != MemoryKind::host)
        return "an end is not in pageable host memory";
    if (!ask.contiguous()) return "an end is not contiguous";
    if (!ask.tuning.mechanisms.cma) return "GANTRY_MECHANISMS switches cma off";
    if (ask.bytes <= eager_limit(ask.peer, ask.tuning) && !ask.question.awaited)
        return "not above GANTRY_EAGER_LIMIT";
    switch (ask.facts.reads) {
        case Reads::not_offered: return "the sender does not offer it";
        case Reads::refused: return "the system refuses to read another process's memory";
        case Reads::unmeasured:
        case Reads::trial:
        case Reads::measured:
        case Reads::look: break;
    }
    if (ask.bytes < ask.tuning.cma_threshold) return "below GANTRY_CMA_THRESHOLD";
    const bool waits = ask.facts.reads == Reads::unmeasured && ask.tuning.cma_threshold == 0;
    return waits ? "not measured yet" : nullptr;
}

}  // namespace

Candidate cma_candidate(const Ask& ask) {
    if (const char* why = obstacle(ask)) return impossible(Protocol::cma, why);
    Candidate candidate;
    Plan& plan = candidate.plan;
    plan = {.protocol = Protocol::cma, .executor = Executor::receiver};
    plan.expected = 3 * ask.hop;  // the sender hears of the end
    const HostRates& rates = ask.facts.rates;
    if (rates.reads != 0) {
        const auto pieces = static_cast<Nanoseconds>(divide_up(ask.bytes, kReadPiece));
        plan.expected +=
            pieces * (static_cast<Nanoseconds>(rates.read_latency()) + kPieceHandling) +
            transfer_time(ask.bytes, rates.read_bytes_per_second());
    } else {
        plan.expected += transfer_time(ask.bytes, ask.peer.bytes_per_second);
    }
    plan.why = "one copy, by the receiver out of the sender's memory";
    if (ask.tuning.cma_threshold > 0) {
        plan.why = "from GANTRY_CMA_THRESHOLD on";
        candidate.settled = true;
    } else if (ask.facts.reads == Reads::trial) {
        plan.why = "to measure what one copy by the receiver costs";
        candidate.settled = true;
    } else if (ask.bytes <= eager_limit(ask.peer, ask.tuning)) {
        candidate.settled = true;  // as what is sent at once: the faster of the two
    }
    return candidate;
}

}  // namespace gantry::plan
