// SPDX-License-Identifier: BSD-3-Clause
//
// What a small blocking collective takes over the mailbox of its communicator (transfer/mailbox.hpp): a cell is
// filled, another processor sees it, and reads the cells of those it waits for. Where one rank brings or
// gets everything, or each only what those below it bring, pieces of long vectors follow each other; where
// all wait for all, each copies in and out.
#include "plan/coll_model.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

double copied(const CollAsk& ask, Bytes bytes) {
    return static_cast<double>(bytes) * 1e9 / ask.facts.copy_bytes_per_second;
}

// In a step some rank waits for nobody, so that it goes ahead: one rank brings everything, or gets it, or
// each gets what those below it bring.
bool pieces_follow(Collective operation) {
    return operation == Collective::bcast || operation == Collective::scatter ||
           operation == Collective::gather || operation == Collective::reduce ||
           operation == Collective::scan;
}

const char* obstacle(const CollAsk& ask, Bytes brought) {
    const Algorithm fixed = ask.tuning.fixed[static_cast<std::size_t>(ask.question.operation)];
    if (fixed != Algorithm::automatic && fixed != Algorithm::mailbox) return "another one is fixed";
    if (ask.ranks > ask.tuning.mailbox_ranks) return "more ranks than GANTRY_COLL_MAILBOX_RANKS";
    if (!ask.question.predefined) return "a function of the program";
    if (!ask.question.commutative) return "a function of the program";
    if (!pieces_follow(ask.question.operation) && brought > kCell)
        return "longer than a cell of the mailbox";
    return brought > ask.tuning.mailbox_bytes ? "longer than GANTRY_COLL_MAILBOX_BYTES" : nullptr;
}

}  // namespace

void add_mailbox(const CollAsk& ask, CollCandidates& list) {
    const Bytes bytes = ask.bytes, others = static_cast<Bytes>(ask.ranks - 1);
    Bytes brought = bytes, read = bytes * others, rows = others, combined = 0;
    switch (ask.question.operation) {
        case Collective::barrier: brought = read = 0; break;
        case Collective::bcast: read = bytes, rows = 1; break;
        case Collective::scatter: brought = bytes * others, read = bytes, rows = 1; break;
        case Collective::gather:
        case Collective::allgather: break;
        case Collective::allgatherv: brought = ask.share(), read = bytes; break;
        case Collective::alltoall: brought = bytes * others; break;
        case Collective::reduce:
        case Collective::allreduce:
        case Collective::scan: combined = bytes * others; break;
        case Collective::reduce_scatter: combined = read = ask.share() * others; break;
        default: return;
    }
    // Who brings works on the next piece while others read the last one.
    const Bytes in_turn = pieces_follow(ask.question.operation)
                              ? std::max(brought, read) + std::min({brought, read, kCell})
                              : brought + read;
    const auto words =
        static_cast<double>(ask.facts.node_segment.flag) +
        static_cast<double>(ask.facts.node_segment.cell) * static_cast<double>(rows + 1);
    list.add({.algorithm = Algorithm::mailbox,
              .time = ask.turn + ask.crowd * (words + copied(ask, in_turn) +
                                              static_cast<double>(combined) * 1e9 /
                                                  ask.facts.reduce_bytes_per_second),
              .why = "short, and the call blocks: through numbered cells of the node",
              .impossible = obstacle(ask, brought),
              .rank_order = true});
}

}  // namespace gantry::plan
