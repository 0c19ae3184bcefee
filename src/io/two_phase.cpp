// SPDX-License-Identifier: BSD-3-Clause
#include "io/two_phase.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::io {

TwoPhase::TwoPhase(File& of, coll::Team its_team, const Access& its_access,
                   const plan::CollectiveIoPlan& its)
    : file(of), team(its_team), access(its_access), plan(its), run(team) {
    const auto me = std::ranges::find(plan.aggregators, team.rank());
    if (me != plan.aggregators.end()) aggregator = static_cast<int>(me - plan.aggregators.begin());
}

Interval TwoPhase::window(std::size_t part, std::int64_t round) const {
    const std::int64_t part_end = begin(part + 1);
    const auto bytes = static_cast<std::int64_t>(plan.window);
    const std::int64_t from = std::min(begin(part) + round * bytes, part_end);
    return {from, std::min(from + bytes, part_end)};
}

namespace {

// My runs in each aggregator's part.
std::vector<std::vector<Strip>> cut(TwoPhase& all) {
    const View& view = *all.access.view;
    const std::size_t parts = all.plan.aggregators.size();
    std::vector<std::vector<Strip>> strips(parts);
    all.mine.resize(parts);
    layout::RunWalk runs = view.runs(all.access.first, all.access.bytes());
    std::size_t part = 0;
    Bytes data = 0;
    for (layout::Block run; runs.next(run);) {
        std::int64_t offset = view.displacement + run.offset;
        while (run.bytes > 0) {
            while (offset >= all.begin(part + 1))
                ++part;
            Share& share = all.mine[part];
            if (share.bytes == 0) share.first = data;
            const Bytes here =
                std::min(run.bytes, static_cast<Bytes>(all.begin(part + 1) - offset));
            add_run(strips[part], offset, here);
            share.bytes += here;
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

}  // namespace

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
    for (std::size_t part = 0; part < strips.size(); ++part)
        all.mine[part].strips = StripReader(std::move(strips[part]));
    if (all.aggregator >= 0)
        for (std::vector<Strip>& each : told)
            all.theirs.emplace_back(std::move(each));
    co_return ended;
}

void prepare(TwoPhase& all, Window& window, std::int64_t round, Wanted wanted) {
    const Interval place = all.window(static_cast<std::size_t>(all.aggregator), round);
    window.begin = place.begin;
    window.end = place.end;
    window.failed = false;
    window.layouts.clear();
    window.intervals.clear();
    const auto gap = static_cast<std::int64_t>(all.plan.sieve);
    for (StripReader& each : all.theirs) {
        const bool as_layouts = wanted == Wanted::layouts;
        layout::FormBuilder builder;
        each.take(place.end, place.begin, as_layouts ? &builder : nullptr, &window.intervals, gap);
        if (as_layouts) window.layouts.emplace_back(builder.finish(), 0);
    }
    window.intervals = merged(std::move(window.intervals), gap);
}

Task<Status> move_window(Executor& executor, TwoPhase& all, Window& window) {
    const Within moving(window.busy);
    Transfer transfer{.file = all.file.handle(),
                      .direction = all.access.direction,
                      .ring_allowed = all.file.hints.io_uring};
    for (const Interval& each : window.intervals)
        transfer.segments.push_back({each.begin, window.memory + (each.begin - window.begin),
                                     static_cast<Bytes>(each.end - each.begin)});
    Status ended;
    if (all.plan.at_once)
        ended = all.file.files.run_now(transfer, all.file.path);
    else
        ended = co_await all.file.files.run(executor, transfer, all.file.path);
    window.failed = !ended.ok();
    all.carrier = transfer.carrier;
    if (!all.writes() && transfer.met_end) {
        all.file_end = std::min(all.file_end, transfer.end_at);
        const std::int64_t from = std::max<std::int64_t>(transfer.end_at - window.begin, 0);
        std::memset(window.memory + from, 0,
                    static_cast<std::size_t>(window.end - window.begin - from));
    }
    co_return ended;
}

}  // namespace gantry::io
