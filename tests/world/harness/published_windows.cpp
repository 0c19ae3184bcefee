// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/published_windows.hpp"

#include "world/harness/window_parts.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

namespace gantry::world {
namespace {

using rma::Verb;

constexpr Bytes kBytes = 4 * kMiB;
constexpr int kRounds = 4;

void run(World& world, const Program& program) {
    const Ending ending = world.run(program);
    if (ending.good()) return;
    std::ostringstream story;
    story << ending;
    std::fprintf(stderr, "the world of the published windows: %s\n", story.str().c_str());
    std::abort();
}

struct Fenced {
    Verb verb = Verb::put;
    bool by_hand = false;
    Nanoseconds begin = 0, end = 0;
};

// Rank 0 is the origin. Who holds the bytes copies them out by hand, who gets them copies them in.
Task<Status> between_fences(Rank& rank, Fenced& fenced) {
    const bool is_source = (rank.number == 0) == (fenced.verb == Verb::put);
    Bytebuffer message(rank, Place::device, kBytes), staging(rank, Place::pinned, kBytes);
    Bytebuffer& used = fenced.by_hand ? staging : message;
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, used, &window);
    GANTRY_CO_TRY(status);
    if (is_source) message.fill(1);
    for (int round = 0; round <= kRounds; ++round) {
        status = co_await meet(rank, 100 + round);
        GANTRY_CO_TRY(status);
        if (round == 1) fenced.begin = std::max(fenced.begin, rank.processor.now());
        if (fenced.by_hand && is_source) {
            status = co_await rank.driver_copy(rank.executor, staging.address(), message.address(),
                                               kBytes);
            GANTRY_CO_TRY(status);
        }
        status = co_await window->fence(rank.executor, 0);
        GANTRY_CO_TRY(status);
        if (rank.number == 0)
            GANTRY_CO_TRY(begin(rank, *window, used, {.verb = fenced.verb, .bytes = kBytes}));
        status = co_await window->fence(rank.executor, 0);
        GANTRY_CO_TRY(status);
        if (fenced.by_hand && !is_source) {
            status = co_await rank.driver_copy(rank.executor, message.address(), staging.address(),
                                               kBytes);
            GANTRY_CO_TRY(status);
        }
    }
    fenced.end = std::max(fenced.end, rank.processor.now());
    WORLD_CHECK(message.holds(1, kBytes));
    status = co_await window->close(rank.executor);
    co_return status;
}

Nanoseconds time_of(Verb verb, bool by_hand) {
    Fenced fenced{verb, by_hand};
    World world({.machine = "c2050-qdr"});
    run(world, [&fenced](Rank& rank) { return between_fences(rank, fenced); });
    return (fenced.end - fenced.begin) / kRounds;
}

constexpr int kWarm = 40, kTimes = 10;

Task<Status> one_sided(Rank& rank, OneSided& times) {
    Bytebuffer memory(rank, Place::device, times.bytes, rank.number),
        origin(rank, Place::device, times.bytes, rank.number);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        FlushedTimes flushed;
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        status = co_await time_flushed(rank, *window, origin, kTimes, &flushed);
        GANTRY_CO_TRY(status);
        times.put = flushed.put;
        times.get = flushed.get;
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await meet(rank, 1);
    GANTRY_CO_TRY(status);
    Nanoseconds start = 0;
    for (int i = 0; i < kWarm + kTimes; ++i) {
        if (i == kWarm) start = rank.processor.now();
        for (int turn = 0; turn < 2; ++turn) {
            if (turn == rank.number) {
                status = co_await send(rank, origin.whole(), 1 - rank.number, 5);
            } else {
                Received got = co_await receive(rank, memory.whole(), 1 - rank.number, 5);
                status = std::move(got.status);
            }
            GANTRY_CO_TRY(status);
        }
    }
    if (rank.number == 0) times.message = (rank.processor.now() - start) / (2 * kTimes);
    status = co_await window->close(rank.executor);
    co_return status;
}

}  // namespace

PublishedWindows measure_windows() {
    return {time_of(Verb::put, false), time_of(Verb::put, true), time_of(Verb::get, false),
            time_of(Verb::get, true)};
}

std::vector<OneSided> measure_one_sided() {
    std::vector<OneSided> all;
    for (Bytes bytes = 8; bytes <= 4 * kMiB; bytes *= 8) {
        OneSided times{bytes};
        World world({.machine = "h200", .ranks_per_node = 2});
        run(world, [&times](Rank& rank) { return one_sided(rank, times); });
        all.push_back(times);
    }
    return all;
}

}  // namespace gantry::world
