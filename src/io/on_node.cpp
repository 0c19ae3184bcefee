// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange of a collective read or write whose ranks are all of one node: windows of the aggregators lie in
// memory that every rank has mapped (node_windows.hpp), and each rank copies its bytes itself, between the
// program's buffer and the window. No bytes go by messages. The ranks
//
//   meet    on the node segment (transfer/node_segment.hpp): aggregators offer the names of their windows
//   vote    whether all have mapped them; else all go by messages, and nothing has moved
//   copy    and count, for each other to see, how far they are:
//
//     a read    aggregator   reads window r, when all have taken window r - 2 | served = r + 1
//               each rank    copies its bytes of window r when that is served | taken  = r + 1
//     a write   each rank    copies its bytes of window r when window r - 2 is served | taken = r + 1
//               aggregator   writes window r when all have taken it           | served = r + 1
//
// A rank leaves when it has copied its part, an aggregator when all have left its windows. Who cannot go on says so
// (Handshake::fail), and whoever waits for it ends; so does who waits for a rank that has died. Whatever failed, a
// segment that others may still copy from or into is not used again.
#include "base/log.hpp"
#include "base/yield.hpp"
#include "coll/node/mapped_peers.hpp"
#include "coll/node/node_call.hpp"
#include "io/pairs.hpp"
#include "io/two_phase.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::io {
namespace {

constexpr int kMapped = 0, kMoved = 1;          // phases
constexpr std::size_t kServed = 0, kTaken = 1;  // what is counted on the way to the second one
constexpr int kOfFiles =
    0x1000;  // what the keys of these meetings have beside those of collectives

struct Meeting {
    explicit Meeting(TwoPhase& its)
        : all(its),
          handshake(its.team.context->node_segment, coll::ranks_of(its.team), its.team.rank(),
                    {its.team.group->context, its.team.tag, its.team.phase + kOfFiles}) {}

    int rank_of(std::size_t part) const { return all.plan.aggregators[part]; }
    // All have taken so many windows.
    Task<Status> taken(Executor& executor, std::int64_t windows) {
        for (int member = 0; windows > 0 && member < handshake.size(); ++member) {
            Status its = co_await handshake.part_raised(executor, member, kMoved, kTaken,
                                                        static_cast<std::uint32_t>(windows));
            GANTRY_CO_TRY(its);
        }
        co_return success();
    }
    Task<Status> served(Executor& executor, std::size_t part, std::int64_t windows) {
        Status ended;
        if (windows > 0)
            ended = co_await handshake.part_raised(executor, rank_of(part), kMoved, kServed,
                                                   static_cast<std::uint32_t>(windows));
        co_return ended;
    }
    void say(std::size_t what, std::int64_t windows) {
        handshake.raise_part(kMoved, what, static_cast<std::uint32_t>(windows));
    }

    TwoPhase& all;
    transfer::Handshake handshake;
    std::unique_ptr<NodeWindows::Own> own;
    std::vector<std::shared_ptr<const SegmentMapping>> others;  // by part; null: my own
    std::vector<std::byte*> memory;                             // by part
    Status with_file;                                           // of my windows
};

// MPI_ERR_UNSUPPORTED_OPERATION: some windows cannot be seen from here.
Status map_all(Meeting& on) {
    const plan::CollectiveIoPlan& plan = on.all.plan;
    for (std::size_t part = 0; part < plan.aggregators.size(); ++part) {
        const int rank = on.rank_of(part);
        const NodeWindowsName& name = on.handshake.offer<NodeWindowsName>(rank);
        if (name.number == 0)
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "rank {} has no windows", rank);
        on.others.emplace_back();
        if (rank == on.all.team.rank()) {
            on.memory.push_back(on.own->mapping.address());
            continue;
        }
        Result<std::shared_ptr<const SegmentMapping>> mapped = on.all.file.files.node_windows.map(
            coll::ranks_of(on.all.team)[static_cast<std::size_t>(rank)], name);
        if (!mapped.ok())
            return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", mapped.status().text());
        on.others.back() = std::move(*mapped);
        on.memory.push_back(on.others.back()->address());
    }
    return success();
}

Task<Status> meet(Executor& executor, Meeting& on) {
    TwoPhase& all = on.all;
    Status opened = co_await on.handshake.open(executor);
    GANTRY_CO_TRY(opened);
    NodeWindowsName mine;
    if (all.aggregator >= 0) {
        Result<std::unique_ptr<NodeWindows::Own>> own =
            all.file.files.node_windows.take(kWindows * all.plan.window);
        if (own.ok()) {
            on.own = std::move(*own);
            mine = on.own->name;
        } else {
            log::info("io: windows of \"{}\" are not shared: {}", all.file.path,
                      own.status().text());
        }
    }
    on.handshake.post(mine);
    Status ready = co_await on.handshake.all_posted(executor);
    if (ready.ok()) ready = all.run.status();
    if (ready.ok()) ready = map_all(on);
    Status agreed = co_await coll::vote(executor, on.handshake, kMapped, std::move(ready));
    for (std::size_t i = 0; on.own != nullptr && i < kWindows; ++i)
        all.windows[i].memory = on.own->mapping.address() + i * all.plan.window;
    co_return agreed;
}

// A window that fails is served all the same: others wait for it, and all hear of it in the end.
Task<Status> serve(Executor& executor, Meeting& on) {
    TwoPhase& all = on.all;
    const std::int64_t rounds = all.rounds();
    for (std::int64_t round = 0; round < rounds; ++round) {
        Window& window = all.windows[round % kWindows];
        const std::int64_t before = all.writes() ? round + 1 : round + 1 - kWindows;
        Status taken = co_await on.taken(executor, before);
        GANTRY_CO_TRY(taken);
        prepare(all, window, round, Wanted::intervals);
        Status moved;
        if (!window.intervals.empty()) moved = co_await move_window(executor, all, window);
        if (on.with_file.ok()) on.with_file = std::move(moved);
        on.say(kServed, round + 1);
        if (all.plan.at_once) co_await Yield(executor);
    }
    Status left = co_await on.taken(executor, rounds);
    co_return left;
}

// The bytes of one window of a part, between the window, which begins there in the file, and the program's buffer.
void copy_strided(Pairs& pairs, Bytes bytes, std::byte* window, std::int64_t begin,
                  Direction direction) {
    Segment pair;
    for (; bytes > 0 && pairs.next(pair, bytes); bytes -= pair.bytes) {
        std::byte* const there = window + (pair.offset - begin);
        if (direction == Direction::write)
            std::memcpy(there, pair.memory, pair.bytes);
        else
            std::memcpy(pair.memory, there, pair.bytes);
    }
}

// The same of a buffer without holes.
void copy_packed(std::byte* memory, Bytes bytes, std::byte* window, const layout::Layout& of_window,
                 Direction direction) {
    if (direction == Direction::write)
        layout::unpack(of_window, window, 0, bytes, memory);
    else
        layout::pack(of_window, window, 0, bytes, memory);
}

// What this rank has of each part, where its buffer has holes.
std::vector<Pairs> pairs_of(const TwoPhase& all) {
    const Access& access = all.access;
    std::vector<Pairs> pairs;
    for (const Share& share : all.mine)
        pairs.emplace_back(static_cast<std::byte*>(access.buffer.address),
                           layout::RunWalk(*access.buffer.layout, share.first, share.bytes),
                           access.view->displacement,
                           access.view->runs(access.first + share.first, share.bytes));
    return pairs;
}

Task<Status> copy(Executor& executor, Meeting& on) {
    TwoPhase& all = on.all;
    const Access& access = all.access;
    const bool packed = access.buffer.contiguous();
    std::vector<Pairs> pairs;
    if (!packed) pairs = pairs_of(all);
    const std::size_t parts = all.mine.size();
    const std::size_t first = all.aggregator >= 0 ? static_cast<std::size_t>(all.aggregator) : 0;
    for (std::int64_t round = 0; round < all.rounds(); ++round) {
        const std::int64_t before = all.writes() ? round + 1 - kWindows : round + 1;
        // One's own first: it is in this processor's cache, and nobody else is waited for.
        for (std::size_t i = 0; i < parts; ++i) {
            const std::size_t part = (first + i) % parts;
            Share& share = all.mine[part];
            const Interval place = all.window(part, round);
            layout::FormBuilder builder;
            const Bytes bytes =
                share.strips.take(place.end, place.begin, packed ? &builder : nullptr, nullptr);
            if (bytes == 0) continue;
            Status served = co_await on.served(executor, part, before);
            GANTRY_CO_TRY(served);
            std::byte* const window =
                on.memory[part] + static_cast<Bytes>(round % kWindows) * all.plan.window;
            if (packed) {
                const layout::Layout of_window(builder.finish(), 0);
                copy_packed(access.buffer.data() + share.first, bytes, window, of_window,
                            access.direction);
                share.first += bytes;
            } else {
                copy_strided(pairs[part], bytes, window, place.begin, access.direction);
            }
        }
        on.say(kTaken, round + 1);
        if (all.plan.at_once) co_await Yield(executor);
    }
    co_return success();
}

// Whoever waits for this rank hears that it does not go on.
Task<Status> or_fail(Executor& executor, Meeting& on, Task<Status> task) {
    static_cast<void>(executor);
    Status ended = co_await std::move(task);
    if (!ended.ok()) on.handshake.fail(ended);
    co_return ended;
}

}  // namespace

Task<Status> exchange_on_node(Executor& executor, TwoPhase& all) {
    Meeting on(all);
    Status met = co_await meet(executor, on);
    GANTRY_CO_TRY(met);
    all.on_node = true;
    Scope both(executor);
    if (all.aggregator >= 0) both.spawn(or_fail(executor, on, serve(executor, on)));
    both.spawn(or_fail(executor, on, copy(executor, on)));
    Status ended = co_await both.join(executor);
    GANTRY_CO_TRY(ended);
    if (on.own != nullptr) all.file.files.node_windows.give(std::move(on.own));
    co_return std::move(on.with_file);
}

}  // namespace gantry::io
