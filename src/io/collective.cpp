// SPDX-License-Identifier: BSD-3-Clause
//
// Reads and writes of all ranks together, in two phases. The part of the file that they touch is cut
// among a few ranks, the aggregators; each goes through its part window by window:
//
//   write   everybody's bytes of the window come into a buffer, the buffer goes to the file
//   read    the window comes from the file, everybody's bytes leave the buffer
//
// and has two buffers, so that one is exchanged while the other is written or read. Ranks tell each
// aggregator once which runs of its part are theirs (strips). How bytes come into windows and leave them:
// by_messages.cpp, and on_node.cpp where all ranks are of one node and see each other's windows.
//
// A failure of the file ends nothing early: the exchange goes on, so nobody waits for ever, and in the
// end all ranks have the same outcome.
#include "coll/node/mapped_peers.hpp"
#include "coll/planner.hpp"
#include "io/agree.hpp"
#include "io/two_phase.hpp"

namespace gantry::io {
namespace {

Task<Status> run_together(Executor& executor, TwoPhase& all) {
    Status told = co_await tell_strips(executor, all);
    all.run.note(Status(told));
    if (all.plan.on_node) {
        Status exchanged = co_await exchange_on_node(executor, all);
        if (all.on_node || exchanged.error_class() != MPI_ERR_UNSUPPORTED_OPERATION)
            co_return exchanged;
    }
    Status exchanged = co_await exchange_by_messages(executor, all);
    co_return exchanged;
}

// What a read of its own would copy; of very many runs, as the first ones are.
Bytes with_gaps(const Access& access) {
    constexpr int kLooks = 4096;
    layout::RunWalk runs = access.view->runs(access.first, access.bytes());
    std::int64_t end = 0;
    Bytes wanted = 0, all = 0;
    int looks = 0;
    for (layout::Block run; looks < kLooks && runs.next(run); ++looks) {
        const Bytes gap = wanted > 0 ? static_cast<Bytes>(run.offset - end) : 0;
        all += run.bytes + (gap <= plan::kWorthACall ? gap : 0);
        wanted += run.bytes;
        end = run.offset + static_cast<std::int64_t>(run.bytes);
    }
    if (looks < kLooks) return all;
    return static_cast<Bytes>(static_cast<double>(all) / static_cast<double>(wanted) *
                              static_cast<double>(access.bytes()));
}

// What the plan follows from beside the extents. Ranks have promised to say the same of it; where they do not, they
// choose alike even so.
struct Terms {
    plan::IoSwitch together = plan::IoSwitch::automatic;
    bool atomic = false, in_memory = false;
    int aggregators = 0;
    Bytes window = 0, stripe = 0;
};
struct Said {
    plan::IoExtent extent;
    Terms terms;
};

Terms terms_of(const File& file, bool in_memory, bool writes) {
    const Hints& hints = file.hints;
    return {writes ? hints.collective_write : hints.collective_read,
            file.atomic,
            in_memory,
            hints.aggregators,
            hints.window,
            hints.stripe};
}

// Hints: those of rank 0.
Terms agreed_terms(const std::vector<Said>& all) {
    Terms terms = all[0].terms;
    for (const Said& each : all) {
        terms.atomic = terms.atomic || each.terms.atomic;
        terms.in_memory = terms.in_memory && each.terms.in_memory;
    }
    return terms;
}

// Whether this rank can copy its bytes from and into windows of any of them.
bool sees_windows(const coll::Team& team, const Access& access) {
    if (!coll::tuning_of(team).node_segment ||
        !team.context->node_segment.covers(coll::ranks_of(team)))
        return false;
    Result<device::Location> location = team.context->locate(access.buffer);
    return location.ok() && transfer::in_host_memory(*location);
}

}  // namespace

Task<Status> File::transfer_all(Executor& executor, coll::Team team, Access access, Bytes* moved) {
    *moved = 0;
    plan::IoExtent mine;
    mine.bytes = access.bytes();
    if (mine.bytes > 0) {
        mine.low = access.view->position_of(access.first);
        mine.high = access.view->position_of(access.first + mine.bytes - 1) + 1;
        // Runs that overlap are in no order that windows follow.
        const auto elements = access.first + mine.bytes > access.view->filetype.size
                                  ? layout::Elements::many
                                  : layout::Elements::one;
        if (!layout::overlaps(access.view->filetype, elements))
            mine.run = mean_run(access.view->filetype, mine.bytes);
    }
    const bool writes = access.direction == Direction::write;
    if (!writes && in_memory_ && mine.run > 0 && hints.sieve_read != plan::IoSwitch::disable)
        mine.with_gaps = with_gaps(access);
    mine.sees_windows = sees_windows(team, access);
    const Said own{mine, terms_of(*this, in_memory_, writes)};
    std::vector<Said> said;
    Status told =
        co_await tell_unless_refused(executor, team, std::move(access.refused), own, &said);
    GANTRY_CO_TRY(told);
    const Terms terms = agreed_terms(said);
    std::vector<plan::IoExtent> extents;
    for (const Said& each : said)
        extents.push_back(each.extent);
    std::vector<int> nodes(extents.size(), 0);
    if (!files.common.nodes.empty())
        for (std::size_t each = 0; each < nodes.size(); ++each)
            nodes[each] = files.common.nodes[static_cast<std::size_t>(group.peers[each])];
    plan::CollectiveIoQuestion question;
    question.writes = writes;
    question.extents = extents;
    question.nodes = nodes;
    question.together = terms.together;
    question.aggregators = terms.aggregators;
    question.window = terms.window;
    question.stripe = terms.stripe;
    question.atomic = terms.atomic;
    question.in_memory = terms.in_memory;
    const plan::CollectiveIoPlan plan = plan::collective_io_plan(question);
    if (!plan.together) {
        access.alone = plan.why;
        Status ended = co_await transfer(executor, access, moved);
        Status agreed = co_await agree(executor, team, ended);
        co_return agreed;
    }
    const Nanoseconds begin = files.context.begins();
    TwoPhase all(*this, team, access, plan);
    Status ended = co_await run_together(executor, all);
    explain(access, plan, all.on_node, all.carrier);
    if (files.context.timeline != nullptr)
        files.context.timeline->access("two phases", begin, mine.bytes);
    std::int64_t end = all.file_end;
    Status agreed = co_await agree(executor, team, ended, &end);
    GANTRY_CO_TRY(agreed);
    *moved = mine.bytes;
    if (writes) co_return success();
    if (end != kNoEnd && mine.bytes > 0) {
        const Bytes before = access.view->data_before(end);
        *moved = before > access.first ? std::min(before - access.first, mine.bytes) : 0;
    }
    co_return success();
}

}  // namespace gantry::io
