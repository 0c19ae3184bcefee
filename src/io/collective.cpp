// SPDX-License-Identifier: BSD-3-Clause
//
// Reads and writes of all ranks together, in two phases. The part of the file that they touch is cut
// among a few ranks, the aggregators; each goes through its part window by window:
//
//   write   everybody's bytes of the window come into a buffer, the buffer goes to the file
//   read    the window comes from the file, everybody's bytes leave the buffer
//
// and has two buffers, so that one is exchanged while the other is written or read. Ranks tell each
// aggregator once which runs of its part are theirs (strips); both sides then know the size of every
// message. Bytes travel from the program's buffer, of any layout and on any device, to where they
// belong in the window, or back: messages take both layouts as they are.
//
// A failure of the file ends nothing early: the exchange goes on, so nobody waits for ever, and in the
// end all ranks have the same outcome.
#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "io/agree.hpp"
#include "io/depth.hpp"
#include "io/file.hpp"
#include "io/strips.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>

namespace gantry::io {
namespace {

using plan::CollectiveIoPlan;

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// One buffer of an aggregator.
struct Window {
    WindowMemory memory;
    std::int64_t begin = 0, end = 0;
    std::vector<layout::Layout> layouts;  // of each rank's bytes, counted from `begin`
    std::vector<Interval> intervals;      // everybody's bytes
    Depth busy{1};                        // with the file
    bool failed = false;
};

struct TwoPhase {
    TwoPhase(File& of, coll::Team its_team, const Access& its_access, const CollectiveIoPlan& its)
        : file(of), team(its_team), access(its_access), plan(its), run(team), files(executor()) {}
    Executor& executor() const { return team.executor(); }
    bool writes() const { return access.direction == Direction::write; }
    std::int64_t begin(std::size_t part) const { return plan.part_begin(part); }
    // Of the window of that round, in an aggregator's part; where there is none both are equal.
    Interval window(std::size_t part, std::int64_t round) const {
        const std::int64_t part_end = begin(part + 1);
        const auto bytes = static_cast<std::int64_t>(plan.window);
        const std::int64_t from = std::min(begin(part) + round * bytes, part_end);
        return {from, std::min(from + bytes, part_end)};
    }

    File& file;
    const coll::Team team;
    const Access& access;
    const CollectiveIoPlan& plan;
    coll::Run run;  // the exchange
    Scope files;    // reads and writes of windows
    ~TwoPhase() {
        for (Window& each : windows)
            file.spare_windows.give(std::move(each.memory));
    }
    TwoPhase(const TwoPhase&) = delete;
    TwoPhase& operator=(const TwoPhase&) = delete;
    // As a rank with data: what it still has for each aggregator, and the next of its bytes.
    std::vector<StripReader> mine;
    std::vector<Bytes> next;
    // As an aggregator: its number, and what the others have for it.
    int aggregator = -1;
    std::vector<StripReader> theirs;
    Window windows[2];
    std::int64_t file_end = kNoEnd;
};

// My runs in each aggregator's part.
std::vector<std::vector<Strip>> cut(TwoPhase& all) {
    const View& view = *all.access.view;
    const std::size_t parts = all.plan.aggregators.size();
    std::vector<std::vector<Strip>> strips(parts);
    all.next.assign(parts, 0);
    layout::RunWalk runs = view.runs(all.access.first, all.access.bytes());
    std::size_t part = 0;
    Bytes data = 0;
    bool fresh = true;
    for (layout::Block run; runs.next(run);) {
        std::int64_t offset = view.displacement + run.offset;
        while (run.bytes > 0) {
            while (offset >= all.begin(part + 1)) {
                ++part;
                fresh = true;
            }
            if (fresh) all.next[part] = data;
            fresh = false;
            const Bytes here =
                std::min(run.bytes, static_cast<Bytes>(all.begin(part + 1) - offset));
            add_run(strips[part], offset, here);
            offset += static_cast<std::int64_t>(here);
            data += here;
            run.bytes -= here;
        }
    }
    return strips;
}

// How many strips a rank has for an aggregator, and the first of them: all, where runs are regular.
constexpr std::size_t kStripsOfLetter = 32;
struct Letter {
    std::size_t strips = 0;
    Strip first[kStripsOfLetter];
};

p2p::Buffer rest_of(std::vector<Strip>& strips) {
    return transfer::bytes_buffer(strips.data() + kStripsOfLetter,
                                  (strips.size() - kStripsOfLetter) * sizeof(Strip));
}

// Every aggregator learns who has which runs of its part.
Task<Status> tell_strips(Executor& executor, TwoPhase& all) {
    const auto ranks = static_cast<std::size_t>(all.team.size());
    std::vector<std::vector<Strip>> strips = cut(all);
    std::vector<Letter> outgoing(strips.size()), incoming(all.aggregator >= 0 ? ranks : 0);
    coll::InFlight letters(all.run);
    for (std::size_t rank = 0; rank < incoming.size(); ++rank)
        letters.receive(transfer::bytes_buffer(&incoming[rank], sizeof(Letter)),
                        static_cast<int>(rank));
    for (std::size_t part = 0; part < strips.size(); ++part) {
        outgoing[part].strips = strips[part].size();
        std::copy_n(strips[part].begin(), std::min(strips[part].size(), kStripsOfLetter),
                    outgoing[part].first);
        letters.send(transfer::bytes_buffer(&outgoing[part], sizeof(Letter)),
                     all.plan.aggregators[part]);
    }
    Status counted = co_await letters.all(executor);
    GANTRY_CO_TRY(counted);
    std::vector<std::vector<Strip>> told(ranks);
    coll::InFlight messages(all.run);
    for (std::size_t rank = 0; rank < incoming.size(); ++rank) {
        std::vector<Strip>& its = told[rank];
        its.resize(incoming[rank].strips);
        std::copy_n(incoming[rank].first, std::min(its.size(), kStripsOfLetter), its.begin());
        if (its.size() > kStripsOfLetter) messages.receive(rest_of(its), static_cast<int>(rank));
    }
    for (std::size_t part = 0; part < strips.size(); ++part)
        if (strips[part].size() > kStripsOfLetter)
            messages.send(rest_of(strips[part]), all.plan.aggregators[part]);
    Status ended = co_await messages.all(executor);
    for (std::vector<Strip>& each : strips)
        all.mine.emplace_back(std::move(each));
    if (all.aggregator >= 0)
        for (std::vector<Strip>& each : told)
            all.theirs.emplace_back(std::move(each));
    co_return ended;
}

// What the window of that round holds of whom.
void prepare(TwoPhase& all, Window& window, std::int64_t round) {
    const Interval place = all.window(static_cast<std::size_t>(all.aggregator), round);
    window.begin = place.begin;
    window.end = place.end;
    window.failed = false;
    window.layouts.clear();
    window.intervals.clear();
    for (StripReader& each : all.theirs) {
        layout::FormBuilder builder;
        each.take(place.end, place.begin, &builder, &window.intervals);
        window.layouts.emplace_back(builder.finish(), 0);
    }
    window.intervals =
        merged(std::move(window.intervals), static_cast<std::int64_t>(all.plan.sieve));
}

// Between a window and the file.
Task<Status> move_window(Executor& executor, TwoPhase& all, Window& window) {
    const Within moving(window.busy);
    Transfer transfer{.file = all.file.handle(), .direction = all.access.direction};
    for (const Interval& each : window.intervals)
        transfer.segments.push_back({each.begin,
                                     window.memory.bytes.get() + (each.begin - window.begin),
                                     static_cast<Bytes>(each.end - each.begin)});
    Status ended;
    if (all.plan.at_once)
        ended = all.file.files.run_now(transfer, all.file.path);
    else
        ended = co_await all.file.files.run(executor, transfer, all.file.path);
    window.failed = !ended.ok();
    if (!all.writes() && transfer.met_end) {
        all.file_end = std::min(all.file_end, transfer.end_at);
        const std::int64_t from = std::max<std::int64_t>(transfer.end_at - window.begin, 0);
        std::memset(window.memory.bytes.get() + from, 0,
                    static_cast<std::size_t>(window.end - window.begin - from));
    }
    co_return ended;
}

// Data bytes [first, first + bytes) of the program's buffer as a message has them.
p2p::Buffer part_of_buffer(const transfer::Buffer& whole, Bytes first, Bytes bytes,
                           std::deque<layout::Layout>& layouts) {
    if (whole.contiguous()) return transfer::bytes_buffer(whole.data() + first, bytes);
    layout::FormBuilder builder;
    layout::RunWalk runs(*whole.layout, first, bytes);
    for (layout::Block run; runs.next(run);)
        builder.add_run(run.offset, run.bytes);
    layouts.emplace_back(builder.finish(), 0);
    return {whole.address, 1, &layouts.back()};
}

// The messages of one round: window is null where this rank is no aggregator.
Task<Status> exchange(Executor& executor, TwoPhase& all, Window* window, std::int64_t round) {
    std::deque<layout::Layout> layouts;
    coll::InFlight messages(all.run);
    // A window that could not be read is told in place of its bytes.
    if (window != nullptr && window->failed && !all.writes())
        all.run.note(failure(MPI_ERR_OTHER, "the window was not read"));
    if (window != nullptr)
        for (std::size_t rank = 0; rank < window->layouts.size(); ++rank) {
            const layout::Layout& layout = window->layouts[rank];
            if (layout.size == 0) continue;
            const p2p::Buffer bytes{window->memory.bytes.get(), 1, &layout};
            if (all.writes())
                messages.receive(bytes, static_cast<int>(rank));
            else
                messages.send(bytes, static_cast<int>(rank));
        }
    for (std::size_t part = 0; part < all.mine.size(); ++part) {
        const Interval place = all.window(part, round);
        const Bytes bytes = all.mine[part].take(place.end, 0, nullptr, nullptr);
        if (bytes == 0) continue;
        const p2p::Buffer buffer =
            part_of_buffer(all.access.buffer, all.next[part], bytes, layouts);
        all.next[part] += bytes;
        if (all.writes())
            messages.send(buffer, all.plan.aggregators[part]);
        else
            messages.receive(buffer, all.plan.aggregators[part]);
    }
    Status ended = co_await messages.all(executor);
    co_return ended;
}

Task<Status> write_rounds(Executor& executor, TwoPhase& all, std::int64_t rounds) {
    for (std::int64_t round = 0; round < rounds; ++round) {
        Window* window = all.aggregator >= 0 ? &all.windows[round % 2] : nullptr;
        if (window != nullptr) {
            Status written = co_await window->busy.room(executor);
            prepare(all, *window, round);
        }
        Status exchanged = co_await exchange(executor, all, window, round);
        // What did not come whole is not written.
        if (window != nullptr && exchanged.ok() && !window->intervals.empty())
            all.files.spawn(move_window(executor, all, *window));
    }
    co_return success();
}

Task<Status> read_rounds(Executor& executor, TwoPhase& all, std::int64_t rounds) {
    const bool aggregates = all.aggregator >= 0;
    if (aggregates) {
        prepare(all, all.windows[0], 0);
        all.files.spawn(move_window(executor, all, all.windows[0]));
    }
    for (std::int64_t round = 0; round < rounds; ++round) {
        Window* window = aggregates ? &all.windows[round % 2] : nullptr;
        if (window != nullptr) {
            Status read = co_await window->busy.room(executor);
            if (round + 1 < rounds) {
                Window& ahead = all.windows[(round + 1) % 2];
                prepare(all, ahead, round + 1);
                all.files.spawn(move_window(executor, all, ahead));
            }
        }
        Status exchanged = co_await exchange(executor, all, window, round);
    }
    co_return success();
}

Task<Status> run_together(Executor& executor, TwoPhase& all) {
    const auto me = std::ranges::find(all.plan.aggregators, all.team.rank());
    Status ready;
    if (me != all.plan.aggregators.end()) {
        all.aggregator = static_cast<int>(me - all.plan.aggregators.begin());
        for (Window& each : all.windows) {
            each.memory = all.file.spare_windows.take(all.plan.window);
            if (each.memory.bytes == nullptr)
                ready = failure(MPI_ERR_NO_MEM,
                                "out of memory for a window of {} bytes (hint cb_buffer_size)",
                                all.plan.window);
        }
    }
    Status told = co_await tell_strips(executor, all);
    if (ready.ok()) ready = told;
    Status agreed = co_await agree(executor, all.team, ready);
    GANTRY_CO_TRY(agreed);
    const auto rounds = static_cast<std::int64_t>(divide_up(all.plan.part, all.plan.window));
    if (all.writes())
        told = co_await write_rounds(executor, all, rounds);
    else
        told = co_await read_rounds(executor, all, rounds);
    Status moved = co_await all.files.join(executor);
    co_return moved.ok() ? all.run.status() : moved;
}

Bytes mean_run(const View& view, Bytes bytes) {
    if (view.contiguous()) return bytes;
    return view.filetype.size / view.filetype.form->runs;
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

}  // namespace

Task<Status> File::transfer_all(Executor& executor, coll::Team team, Access access, Bytes* moved) {
    *moved = 0;
    plan::IoExtent mine;
    mine.bytes = access.bytes();
    if (mine.bytes > 0) {
        mine.low = access.view->position_of(access.first);
        mine.high = access.view->position_of(access.first + mine.bytes - 1) + 1;
        // Runs that overlap are in no order that windows follow.
        if (!layout::overlaps(access.view->filetype)) mine.run = mean_run(*access.view, mine.bytes);
    }
    const bool writes = access.direction == Direction::write;
    if (!writes && in_memory_ && mine.run > 0 && hints.sieve_read != plan::IoSwitch::disable)
        mine.with_gaps = with_gaps(access);
    std::vector<plan::IoExtent> extents;
    Status told = co_await tell_all(executor, team, mine, &extents);
    GANTRY_CO_TRY(told);
    std::vector<int> nodes(extents.size(), 0);
    if (!files.common.nodes.empty())
        for (std::size_t each = 0; each < nodes.size(); ++each)
            nodes[each] = files.common.nodes[static_cast<std::size_t>(group.peers[each])];
    plan::CollectiveIoQuestion question;
    question.writes = writes;
    question.extents = extents;
    question.nodes = nodes;
    question.together = writes ? hints.collective_write : hints.collective_read;
    question.aggregators = hints.aggregators;
    question.window = hints.window;
    question.stripe = hints.stripe;
    question.atomic = atomic;
    question.in_memory = in_memory_;
    const plan::CollectiveIoPlan plan = plan::collective_io_plan(question);
    if (!plan.together) {
        access.alone = plan.why;
        Status ended = co_await transfer(executor, access, moved);
        Status agreed = co_await agree(executor, team, ended);
        co_return agreed;
    }
    explain(access, plan);
    const Nanoseconds begin = files.context.begins();
    TwoPhase all(*this, team, access, plan);
    Status ended = co_await run_together(executor, all);
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
