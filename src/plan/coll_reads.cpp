// SPDX-License-Identifier: BSD-3-Clause
//
// What a collective of host memory takes whose ranks, once they have met on the node segment of their node, read
// the memory of each other through the kernel (docs/design/host-collectives.md): one copy where messages
// through slots make two, and no message. Reductions are made in shares: each rank reads its share of all
// vectors and combines it, then those that want the result read the shares.
#include "plan/coll_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

// Waiting for all ranks goes through the engine, which also drives everything else.
constexpr double kTurnOfEngine = 600;

struct Work {
    Bytes read = 0;      // by the rank that reads most
    Bytes from = 0;      // ranks that it reads from
    Bytes combined = 0;  // by the rank that combines most
    int handshakes = 1;  // times that all wait for all, the first one on the node segment
};

Work work_of(const CollAsk& ask) {
    const Bytes bytes = ask.bytes, others = static_cast<Bytes>(ask.ranks - 1);
    const Bytes shares = ask.share() * others;
    switch (ask.question.operation) {
        case Collective::bcast:
        case Collective::scatter:
        case Collective::scatterv: return {bytes, 1, 0, 2};
        case Collective::allgatherv: return {shares, others, 0, 2};
        case Collective::reduce:
            if (ask.ranks == 2) return {bytes, 1, bytes, 2};  // the root alone
            [[fallthrough]];
        case Collective::allreduce: return {2 * shares, 2 * others, shares, 3};
        case Collective::reduce_scatter: return {shares, others, shares, 2};
        case Collective::scan: return {bytes * others, others, bytes * others, 2};
        default: return {bytes * others, others, 0, 2};
    }
}

const char* obstacle(const CollAsk& ask) {
    const CollQuestion& question = ask.question;
    if (!ask.tuning.reads) return "GANTRY_MECHANISMS switches cma off";
    if (question.node_segment.no_reads)
        return "the system refuses to read another process's memory";
    if (question.memory != CollMemory::host) return "not in host memory that the others may read";
    if (question.in_place) return "in place, others read what would be overwritten";
    if (!question.predefined) return "a function of the program";
    return ask.bytes < ask.tuning.reads_from ? "below GANTRY_CMA_THRESHOLD" : nullptr;
}

}  // namespace

void add_reads(const CollAsk& ask, CollCandidates& list) {
    const Work work = work_of(ask);
    const CollFacts& facts = ask.facts;
    const HostRates& measured = ask.question.node_segment.rates;
    const double rate =
        measured.reads != 0 ? measured.read_bytes_per_second() : facts.read_bytes_per_second;
    const double call =
        measured.call != 0 ? measured.read_latency() : static_cast<double>(facts.read_call);
    const auto others = static_cast<double>(ask.ranks - 1);
    const double handshakes =
        static_cast<double>(facts.node_segment.handshake) +
        work.handshakes *
            (ask.turn + ask.crowd * (kTurnOfEngine + static_cast<double>(facts.node_segment.flag) +
                                     others * static_cast<double>(facts.node_segment.row)));
    const double moved = static_cast<double>(work.from) * call +
                         static_cast<double>(work.read) * 1e9 / rate + ask.combine(work.combined);
    list.add({.algorithm = Algorithm::reads,
              .time = handshakes + ask.crowd * moved,
              .why = "long, in host memory: each reads what it needs where it lies",
              .impossible = obstacle(ask),
              .rank_order = true});
}

}  // namespace gantry::plan
