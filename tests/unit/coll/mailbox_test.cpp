// SPDX-License-Identifier: BSD-3-Clause
//
// Small blocking collectives over a mailbox: the right bytes for every operation, in pieces, in place and in
// rank order; no message; device memory is met by everybody; who dies leaves errors.
#include "coll/mailbox_call.hpp"

#include "coll/mailbox_use.hpp"
#include "collective_world.hpp"
#include "transfer/node_segment.hpp"

#include <cstring>
#include <functional>

namespace gantry::coll {
namespace {

using plan::Collective;
using Number = std::int64_t;

world::Options one_node(int ranks, std::uint64_t seed = 1) {
    world::Options options;
    options.machine = "h200";
    options.mechanisms = "all";
    options.ranks = ranks;
    options.ranks_per_node = ranks;
    options.seed = seed;
    options.jitter = 5 * kMicrosecond;
    return options;
}

// What an operation gives must show the order of the operands: a op b = 31 a + b.
void ordered(const void* first, void* second, std::size_t count) {
    const auto* a = static_cast<const Number*>(first);
    auto* b = static_cast<Number*>(second);
    for (std::size_t i = 0; i < count; ++i)
        b[i] = static_cast<Number>(31 * static_cast<std::uint64_t>(a[i]) +
                                   static_cast<std::uint64_t>(b[i]));
}

struct Call {
    Collective operation;
    std::size_t count;  // of a block
    int root = 0;
    bool in_place = false;
    bool exclusive = false;  // of a scan
};

bool is_rooted(Collective operation) {
    return operation == Collective::bcast || operation == Collective::reduce ||
           operation == Collective::gather || operation == Collective::scatter;
}
bool reduces(Collective operation) {
    return operation == Collective::reduce || operation == Collective::allreduce ||
           operation == Collective::reduce_scatter || operation == Collective::scan;
}

// Number i of what `rank` brings.
Number brought(int rank, std::size_t i) {
    return rank * 1000 + static_cast<Number>(i);
}

constexpr Number kUntouched = -1;  // what nothing was written to

Number reduced(int ranks, std::size_t i) {
    Number sum = brought(0, i);
    for (int rank = 1; rank < ranks; ++rank) {
        Number next = brought(rank, i);
        ordered(&sum, &next, 1);
        sum = next;
    }
    return sum;
}

// How many blocks a rank brings and gets.
struct Sizes {
    std::size_t brings, gets;
};
Sizes sizes_of(const Call& call, std::size_t ranks, bool is_root) {
    switch (call.operation) {
        case Collective::bcast: return {is_root ? 1u : 0u, is_root ? 0u : 1u};
        case Collective::reduce: return {1, is_root ? 1u : 0u};
        case Collective::allreduce:
        case Collective::scan: return {1, 1};
        case Collective::reduce_scatter: return {ranks, 1};
        case Collective::gather: return {1, is_root ? ranks : 0};
        case Collective::scatter: return {is_root ? ranks : 0, 1};
        case Collective::allgather: return {1, ranks};
        case Collective::alltoall: return {ranks, ranks};
        default: return {0, 0};
    }
}

// Number i of what `rank` gets.
Number expected(const Call& call, int ranks, int rank, std::size_t i) {
    const std::size_t n = call.count;
    const auto me = static_cast<std::size_t>(rank);
    switch (call.operation) {
        case Collective::bcast: return brought(call.root, i);
        case Collective::reduce:
        case Collective::allreduce: return reduced(ranks, i);
        case Collective::reduce_scatter: return reduced(ranks, me * n + i);
        case Collective::scan:
            if (!call.exclusive) return reduced(rank + 1, i);
            if (rank > 0) return reduced(rank, i);
            return call.in_place ? brought(0, i) : kUntouched;
        case Collective::scatter: return brought(call.root, me * n + i);
        case Collective::alltoall: return brought(static_cast<int>(i / n), me * n + i % n);
        default: return brought(static_cast<int>(i / n), i % n);
    }
}

struct Opened {
    std::unique_ptr<transfer::Mailbox> mailbox;
};

Task<Status> open(Executor& executor, Rank& rank, const p2p::Group& group, Opened* opened) {
    const transfer::HandshakeKey key{group.context, 77, 0};
    Result<std::unique_ptr<transfer::Mailbox>> mailbox =
        co_await rank.transfer.node_segment.open_mailbox(executor, group.peers, group.rank, key);
    if (!mailbox.ok()) co_return std::move(mailbox).status();
    opened->mailbox = std::move(*mailbox);
    WORLD_CHECK(opened->mailbox != nullptr);
    co_return success();
}

MailboxJob job_of(const Call& call, std::vector<Number>& source, std::vector<Number>& sink,
                  int rank, const layout::Layout& layout) {
    MailboxJob job{.operation = call.operation,
                   .block = call.count * sizeof(Number),
                   .root = is_rooted(call.operation) ? call.root : -1,
                   .exclusive = call.exclusive,
                   .in_place = call.in_place};
    job.source = {source.data(), source.size(), &layout};
    job.sink = {sink.data(), sink.size(), &layout};
    if (reduces(call.operation)) job.reduction = ordered, job.element = sizeof(Number);
    if (call.operation == Collective::reduce_scatter) {
        job.whole = source.size() * sizeof(Number);
        job.share_first = static_cast<Bytes>(rank) * job.block;
    }
    if (call.in_place && call.operation == Collective::allgather) {
        job.source = job.sink;
        job.source_first = static_cast<Bytes>(rank) * job.block;
    }
    if (call.in_place && reduces(call.operation)) job.source = job.sink;
    return job;
}

Task<Status> make(Executor& executor, Rank& rank, transfer::Mailbox* mailbox, Call call) {
    const int ranks = mailbox->size(), me = rank.number;
    const layout::Layout layout = layout::contiguous_layout(sizeof(Number));
    const Sizes sizes = sizes_of(call, static_cast<std::size_t>(ranks), me == call.root);
    std::vector<Number> source(sizes.brings * call.count),
        sink(sizes.gets * call.count, kUntouched);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = brought(me, i);
    const bool gets_in_place = call.in_place && !sink.empty();
    if (gets_in_place) {
        const bool whole = reduces(call.operation);
        const std::size_t at = whole ? 0 : static_cast<std::size_t>(me) * call.count;
        for (std::size_t i = 0; i < call.count; ++i)
            sink[at + i] = source[i];
        source.assign(source.size(), -5);
    }
    Call mine = call;
    mine.in_place = gets_in_place;
    MailboxCall run(*mailbox, job_of(mine, source, sink, me, layout));
    Status over = co_await run.finish(executor, rank.transfer.node_segment);
    GANTRY_CO_TRY(over);
    WORLD_CHECK(!run.meets());
    if (!run.status().ok())
        co_return failure(run.status().error_class(), "{}", run.status().text());
    for (std::size_t i = 0; i < sink.size(); ++i)
        WORLD_CHECK(sink[i] == expected(call, ranks, me, i));
    co_return success();
}

Task<Status> every_operation(Executor& executor, Rank& rank, std::size_t count) {
    Opened opened;
    Status ready = co_await open(executor, rank, rank.all, &opened);
    GANTRY_CO_TRY(ready);
    const int ranks = opened.mailbox->size();
    const std::size_t fits =
        transfer::kMailboxRoom / sizeof(Number) / static_cast<std::size_t>(ranks);
    for (const Collective operation :
         {Collective::barrier, Collective::bcast, Collective::reduce, Collective::allreduce,
          Collective::reduce_scatter, Collective::gather, Collective::scatter,
          Collective::allgather, Collective::alltoall}) {
        for (int root = 0; root < (is_rooted(operation) ? ranks : 1); ++root) {
            Call call{operation, operation == Collective::barrier ? 0 : count, root};
            if (operation == Collective::reduce_scatter) call.count = std::min(count, fits);
            Status made = co_await make(executor, rank, opened.mailbox.get(), call);
            GANTRY_CO_TRY(made);
        }
    }
    for (const Collective operation :
         {Collective::reduce, Collective::allreduce, Collective::gather, Collective::allgather}) {
        const Call call{operation, count, ranks - 1, true};
        Status made = co_await make(executor, rank, opened.mailbox.get(), call);
        GANTRY_CO_TRY(made);
    }
    for (const bool exclusive : {false, true}) {
        for (const bool in_place : {false, true}) {
            const Call call{Collective::scan, count, 0, in_place, exclusive};
            Status made = co_await make(executor, rank, opened.mailbox.get(), call);
            GANTRY_CO_TRY(made);
        }
    }
    co_return success();
}

TEST(Mailbox, EveryOperationGivesTheRightBytesWithoutAMessage) {
    constexpr std::size_t kCounts[] = {1, 5, 6, 7, 100, 511, 512, 513, 3000};
    for (const int ranks : {2, 3, 4, 7, 16}) {
        for (const std::size_t count : kCounts) {
            if (ranks > 4 && count > 600) continue;
            world::World world(one_node(ranks, static_cast<std::uint64_t>(ranks) + count));
            const world::Ending ending = world.run(
                [count](Rank& rank) { return every_operation(rank.executor, rank, count); });
            ASSERT_TRUE(ending.good()) << ranks << " ranks, " << count << " numbers: " << ending;
            EXPECT_EQ(messages_of(world), 0u);
        }
    }
}

// Which rank brings device memory to which call; -1: none.
Task<Status> calls_with_device(Executor& executor, Rank& rank, Collective operation, int owner) {
    Opened opened;
    Status ready = co_await open(executor, rank, rank.all, &opened);
    GANTRY_CO_TRY(ready);
    const layout::Layout layout = layout::contiguous_layout(sizeof(Number));
    const bool all_learn_at_once =
        operation != Collective::reduce && operation != Collective::gather;
    int met = 0;
    constexpr int kCalls = 5 * static_cast<int>(transfer::kMailboxEpoch);
    for (int number = 0; number < kCalls; ++number) {
        std::vector<Number> source(8, 1), sink(8, 0);
        MailboxJob job = job_of({operation, 1, owner}, source, sink, rank.number, layout);
        job.on_device = rank.number == owner && number == 0;
        MailboxCall run(*opened.mailbox, job);
        Status over = co_await run.finish(executor, rank.transfer.node_segment);
        GANTRY_CO_TRY(over);
        WORLD_CHECK(run.status().ok());
        if (!run.meets()) continue;
        ++met;
        // At once where everybody reads what that rank says; in any case for an epoch, two epochs later.
        const bool epoch = number / static_cast<int>(transfer::kMailboxEpoch) == 2;
        WORLD_CHECK(epoch || (number == 0 && all_learn_at_once));
    }
    WORLD_CHECK(met == static_cast<int>(transfer::kMailboxEpoch) + (all_learn_at_once ? 1 : 0));
    co_return success();
}

TEST(Mailbox, DeviceMemoryOfOneRankSendsAllRanksTheUsualWayAlike) {
    for (const Collective operation : {Collective::allreduce, Collective::bcast, Collective::gather,
                                       Collective::reduce, Collective::alltoall}) {
        world::World world(one_node(3, 9));
        const world::Ending ending = world.run([operation](Rank& rank) {
            return calls_with_device(rank.executor, rank, operation, 1);
        });
        ASSERT_TRUE(ending.good()) << name(operation) << ": " << ending;
    }
}

Task<Status> run_ahead(Executor& executor, Rank& rank, int* ahead) {
    constexpr int kCalls = 40;
    Opened opened;
    Status ready = co_await open(executor, rank, rank.all, &opened);
    GANTRY_CO_TRY(ready);
    const layout::Layout layout = layout::contiguous_layout(sizeof(Number));
    std::vector<Number> source(1, brought(0, 0)), sink(1);
    const Call call{Collective::bcast, 1, 0};
    int done = 0;
    for (bool at_once = true; rank.number == 0 && at_once; ++done) {
        MailboxCall run(*opened.mailbox, job_of(call, source, sink, 0, layout));
        at_once = run.poll();
        if (at_once) continue;
        *ahead = done;
        Status over = co_await run.finish(executor, rank.transfer.node_segment);
        GANTRY_CO_TRY(over);
    }
    for (; done < kCalls; ++done) {
        Status made = co_await make(executor, rank, opened.mailbox.get(), call);
        GANTRY_CO_TRY(made);
    }
    co_return success();
}

TEST(Mailbox, ARootRunsAheadByAllCellsAndNoFurther) {
    world::World world(one_node(2));
    int ahead = 0;
    const world::Ending ending =
        world.run([&ahead](Rank& rank) { return run_ahead(rank.executor, rank, &ahead); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(ahead, static_cast<int>(transfer::kMailboxCells));
}

Task<Status> until_it_ends(Executor& executor, Rank& rank, int* wrong) {
    Opened opened;
    Status ready = co_await open(executor, rank, rank.all, &opened);
    GANTRY_CO_TRY(ready);
    for (int i = 0; i < 400; ++i) {
        const Collective operation = i % 3 == 0   ? Collective::bcast
                                     : i % 3 == 1 ? Collective::reduce
                                                  : Collective::allreduce;
        const Call call{operation, 30, i % opened.mailbox->size()};
        Status made = co_await make(executor, rank, opened.mailbox.get(), call);
        if (made.ok()) continue;
        if (made.error_class() == MPI_ERR_OTHER) ++*wrong;  // WORLD_CHECK
        co_return made;
    }
    co_return success();
}

TEST(Mailbox, ARankThatDiesLeavesRightBytesOrAnErrorOnEveryOther) {
    for (const int ranks : {2, 3, 5}) {
        int wrong = 0;
        const world::Program program = [&wrong](Rank& rank) {
            return until_it_ends(rank.executor, rank, &wrong);
        };
        world::World healthy(one_node(ranks, 3));
        const world::Ending whole = healthy.run(program);
        ASSERT_TRUE(whole.good()) << whole;
        for (int step = 0; step < 8; ++step) {
            world::World world(one_node(ranks, 3));
            world.kill_at(whole.time * step / 8, step % ranks);
            const world::Ending ending = world.run(program);
            ASSERT_FALSE(ending.stuck) << ranks << " ranks, step " << step << ": " << ending;
            ASSERT_EQ(wrong, 0) << ranks << " ranks, step " << step;
        }
    }
}

// Communicators come and go; there are only so many mailboxes at once.
Task<Status> open_many(Executor& executor, Rank& rank) {
    for (int round = 0; round < 3; ++round) {
        std::vector<std::unique_ptr<transfer::Mailbox>> mailboxes;
        for (int i = 0; i <= static_cast<int>(transfer::kMailboxes); ++i) {
            const transfer::HandshakeKey key{5, round * 10 + i, 0};
            Result<std::unique_ptr<transfer::Mailbox>> mailbox =
                co_await rank.transfer.node_segment.open_mailbox(executor, rank.all.peers,
                                                                 rank.number, key);
            if (!mailbox.ok()) co_return std::move(mailbox).status();
            WORLD_CHECK((*mailbox != nullptr) == (i < static_cast<int>(transfer::kMailboxes)));
            if (*mailbox == nullptr) continue;
            const Call call{Collective::allreduce, 9};
            Status made = co_await make(executor, rank, mailbox->get(), call);
            GANTRY_CO_TRY(made);
            mailboxes.push_back(std::move(*mailbox));
        }
        // A mailbox that another rank still reads is not free.
        Status together = co_await world::meet(rank, round);
        GANTRY_CO_TRY(together);
    }
    co_return success();
}

TEST(Mailbox, MailboxesAreUsedAgainAndWhoFindsNoneIsToldOnAllRanks) {
    world::World world(one_node(3));
    const world::Ending ending =
        world.run([](Rank& rank) { return open_many(rank.executor, rank); });
    ASSERT_TRUE(ending.good()) << ending;
}

}  // namespace
}  // namespace gantry::coll
