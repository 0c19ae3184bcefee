// SPDX-License-Identifier: BSD-3-Clause
//
// The comparison, of n ranks:
//
//     1. an allgather of what each rank says once for all. That is all where the data of all ranks
//        is alike
//     2. of lists, one for each rank: what has to be known to compare a rank's own list. Nothing more
//        where it is compared with what was said in 1; an exchange like the operation's own of n
//        descriptions a rank; a broadcast of one rank's list
//     3. an allgather of who has found a difference. Nobody has: that is the end. Else the first of
//        them tells all
//
// A rank whose messages fail in one step takes part in the next ones and in the operation all the
// same, and says so, as algorithms do (coll/exchange.hpp): nobody waits for it.
#include "coll/bcast.hpp"
#include "transfer/buffer.hpp"
#include "coll/gather.hpp"
#include "coll/inter.hpp"
#include "mpi/check/agreement.hpp"
#include "mpi/check/difference.hpp"
#include "mpi/check/statements.hpp"

#include <algorithm>
#include <vector>

namespace gantry::mpi {
namespace {

// One for each rank or edge.
template <class T>
coll::Blocks blocks_of(const std::vector<T>& each) {
    const p2p::Buffer one = transfer::bytes_buffer(each.data(), sizeof(T));
    coll::Blocks blocks;
    blocks.address = one.address;
    blocks.count = one.count;
    blocks.layout = one.layout;
    return blocks;
}

Difference find_in_lists(const Terms& mine, const std::vector<Said>& all, const Groups& groups,
                         int me) {
    for (std::size_t i = 0; i < mine.incoming.size(); ++i) {
        const int from = groups.peer(static_cast<int>(i));
        const Said& said = all[static_cast<std::size_t>(from)];
        if (said.sends != 0 && !said.sent.matches(mine.incoming[i]))
            return {Difference::About::data, from, me, 0, said.sent, mine.incoming[i]};
    }
    for (std::size_t i = 0; i < mine.outgoing.size(); ++i) {
        const int to = groups.peer(static_cast<int>(i));
        const Said& said = all[static_cast<std::size_t>(to)];
        if (said.receives != 0 && !mine.outgoing[i].matches(said.received))
            return {Difference::About::data, me, to, 0, mine.outgoing[i], said.received};
    }
    return {};
}

Task<Status> exchange(Executor& executor, const coll::Team& team, const Terms& mine,
                      coll::Blocks outgoing, coll::Blocks incoming) {
    if (mine.neighbors != nullptr)
        return coll::neighbor_exchange(executor, team, mine.neighbors, std::move(outgoing),
                                       std::move(incoming));
    if (team.border > 0)
        return coll::inter_alltoall(executor, coll::Sides(team), std::move(outgoing),
                                    std::move(incoming));
    return coll::alltoall(executor, team, std::move(outgoing), std::move(incoming));
}

Task<Result<Difference>> find_by_exchange(Executor& executor, coll::Team team,
                                          std::shared_ptr<const Terms> mine) {
    std::vector<Part> sent(mine->incoming.size());  // to this rank
    Task<Status> exchanging =
        exchange(executor, team, *mine, blocks_of(mine->outgoing), blocks_of(sent));
    Status exchanged = co_await std::move(exchanging);
    if (!exchanged.ok()) co_return exchanged;
    const Groups groups(team);
    for (std::size_t i = 0; i < sent.size(); ++i) {
        const int from = mine->neighbors != nullptr ? mine->neighbors->sources[i]
                                                    : groups.peer(static_cast<int>(i));
        if (from == MPI_PROC_NULL || sent[i].matches(mine->incoming[i])) continue;
        const Difference found{Difference::About::data, from, team.rank(), 0, sent[i],
                               mine->incoming[i]};
        co_return found;
    }
    co_return Difference{};
}

// With the list of the first rank of this one's group.
Task<Result<Difference>> find_in_shares(Executor& executor, coll::Team team,
                                        std::shared_ptr<const Terms> mine) {
    std::vector<Part> named = mine->incoming;
    const coll::Team group = team.border > 0 ? coll::Sides(team).mine : team;
    const p2p::Buffer list = transfer::bytes_buffer(named.data(), named.size() * sizeof(Part));
    Status told = co_await coll::bcast(executor, group, list, 0);
    if (!told.ok()) co_return told;
    for (std::size_t i = 0; i < named.size(); ++i) {
        if (mine->incoming[i].matches(named[i])) continue;
        const Difference found{Difference::About::share, team.rank(),
                               group.in_group(0),        group.in_group(static_cast<int>(i)),
                               mine->incoming[i],        named[i]};
        co_return found;
    }
    co_return Difference{};
}

// How a comparison ended: one of the two, or neither.
struct Verdict {
    Status failure;     // of this rank's messages: it does not know, and others may
    Status difference;  // all ranks have the same

    Verdict() = default;
    explicit Verdict(Status failed) : failure(std::move(failed)) {}
};

// What the first rank says that has found something.
Task<Verdict> judge(Executor& executor, coll::Team team, Result<Difference> found) {
    const Status before = found.status();
    team.before = &before;
    Difference told = found.ok() ? found.value() : Difference{};
    const Difference::About mine = told.about;
    std::vector<Difference::About> all(static_cast<std::size_t>(team.size()));
    const p2p::Buffer one = transfer::bytes_buffer(&mine, sizeof mine);
    Verdict verdict;
    verdict.failure = co_await coll::allgather(executor, team, one, blocks_of(all), false);
    if (!verdict.failure.ok()) co_return verdict;
    const auto first = std::ranges::find_if(
        all, [](Difference::About about) { return about != Difference::About::nothing; });
    if (first == all.end()) co_return verdict;
    const p2p::Buffer difference = transfer::bytes_buffer(&told, sizeof told);
    verdict.difference =
        co_await coll::bcast(executor, team, difference, static_cast<int>(first - all.begin()));
    if (verdict.difference.ok()) verdict.difference = told.told(Groups(team));
    co_return verdict;
}

Task<Verdict> compare(Executor& executor, coll::Team team, std::shared_ptr<const Terms> mine) {
    using Rule = Terms::Rule;
    const Groups groups(team);
    const bool lists = mine->rule != Rule::alike;
    std::vector<Said> all(static_cast<std::size_t>(team.size()));
    const p2p::Buffer own = transfer::bytes_buffer(&mine->said, sizeof mine->said);
    Verdict verdict;
    verdict.failure = co_await coll::allgather(executor, team, own, blocks_of(all), false);
    const bool knows = verdict.failure.ok();
    if (knows) verdict.difference = compare_calls(all, groups);
    if (knows && verdict.difference.ok() && (!lists || mine->rule == Rule::shares))
        verdict.difference = compare_data(all, groups);
    if (!lists || !verdict.difference.ok()) co_return verdict;

    team.before = &verdict.failure;
    Result<Difference> found = Difference{};
    if (mine->rule == Rule::exchanged || mine->rule == Rule::along_edges) {
        found = co_await find_by_exchange(executor, team, mine);
    } else if (mine->rule == Rule::shares) {
        found = co_await find_in_shares(executor, team, mine);
    } else if (knows) {
        found = find_in_lists(*mine, all, groups, team.rank());
    }
    if (!knows) found = verdict.failure;
    Verdict judged = co_await judge(executor, team, std::move(found));
    co_return judged;
}

}  // namespace

Task<Status> run_if_agreed(Executor& executor, coll::Team team, std::shared_ptr<const Terms> mine,
                           StartCollective start) {
    const Verdict verdict = co_await compare(executor, team, std::move(mine));
    GANTRY_CO_TRY(verdict.difference);
    // The others may have agreed.
    team.before = &verdict.failure;
    Task<Status> operation = start(team);
    Status ended = co_await std::move(operation);
    GANTRY_CO_TRY(verdict.failure);
    co_return ended;
}

Task<Status> run_behind(const Agreement& agreement, coll::Team team, StartCollective start) {
    if (agreement.is_empty()) [[likely]]
        return start(team);
    return run_if_agreed(team.executor(), team, agreement.terms(), std::move(start));
}

}  // namespace gantry::mpi
