// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/published.hpp"

#include "world/harness/programs.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <sstream>

namespace gantry::world {
namespace {

constexpr int kRounds = 4;
constexpr int kTag = 1;

// What each rank has, as a program would set it up before the timing.
struct Buffers {
    Buffers(Rank& rank, Place place)
        : message(rank, place, kPublishedBytes), staging(rank, Place::pinned, kPublishedBytes) {}
    Bytebuffer message, staging;
};

// Whether control messages have a queue pair of their own beside the bulk
// (model::Link::control_max).
enum class Queues { apart, shared };

enum class Method { gantry, host_to_host, copy_and_send, user_pipeline, slides_loop };

struct Setup {
    Method method;
    Bytes block = kPublishedBytes;
    Queues queues = Queues::apart;
    std::array<Place, 2> places{Place::device, Place::device};  // of the message, by rank
    Nanoseconds latency = 0;                                    // the result

    bool by_hand(const Rank& rank) const {
        return places[static_cast<std::size_t>(rank.number)] == Place::device;
    }
};

// Starts a driver copy of each block; `done` has a completion for each.
void start_copies(Rank& rank, std::byte* to, std::byte* from, Bytes block,
                  std::deque<Completion>& done) {
    for (Bytes at = 0; at < kPublishedBytes; at += block) {
        done.emplace_back(rank.executor);
        const Bytes bytes = std::min(block, kPublishedBytes - at);
        rank.device.copy({to + at, from + at, bytes, 0, device::Engine::automatic}, done.back());
    }
}

Task<Status> push_pipelined(Rank& rank, Buffers& buffers, const Setup& setup) {
    std::deque<Completion> copied;
    std::vector<Result<p2p::Request*>> sending;
    const bool by_hand = setup.by_hand(rank);
    if (by_hand)
        start_copies(rank, buffers.staging.address(), buffers.message.address(), setup.block,
                     copied);
    Bytebuffer& ready = by_hand ? buffers.staging : buffers.message;
    for (Bytes at = 0; at < kPublishedBytes; at += setup.block) {
        Status status = success();
        if (by_hand) {
            Completion& block = copied[at / setup.block];
            status = co_await block;
        }
        GANTRY_CO_TRY(status);
        const Bytes bytes = std::min(setup.block, kPublishedBytes - at);
        if (setup.method == Method::slides_loop) {
            status = co_await send(rank, ready.part(at, bytes), 1 - rank.number, kTag);
            GANTRY_CO_TRY(status);
        } else {
            sending.push_back(rank.messenger.isend(rank.all, ready.part(at, bytes), 1 - rank.number,
                                                   kTag, p2p::SendMode::standard));
        }
    }
    for (Result<p2p::Request*>& request : sending) {
        Received sent = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(sent.status);
    }
    co_return success();
}

Task<Status> pull_pipelined(Rank& rank, Buffers& buffers, const Setup& setup) {
    std::vector<Result<p2p::Request*>> receiving;
    std::deque<Completion> copied;
    const bool by_hand = setup.by_hand(rank);
    Bytebuffer& arriving = by_hand ? buffers.staging : buffers.message;
    const bool posted_ahead = setup.method == Method::user_pipeline;
    for (Bytes at = 0; posted_ahead && at < kPublishedBytes; at += setup.block)
        receiving.push_back(rank.messenger.ireceive(
            rank.all, arriving.part(at, std::min(setup.block, kPublishedBytes - at)),
            1 - rank.number, kTag));
    std::size_t index = 0;
    for (Bytes at = 0; at < kPublishedBytes; at += setup.block, ++index) {
        const Bytes bytes = std::min(setup.block, kPublishedBytes - at);
        Result<p2p::Request*> next(nullptr);
        if (posted_ahead)
            next = std::move(receiving[index]);
        else
            next =
                rank.messenger.ireceive(rank.all, arriving.part(at, bytes), 1 - rank.number, kTag);
        Received received = co_await finish(rank.executor, rank, std::move(next));
        GANTRY_CO_TRY(received.status);
        if (!by_hand) continue;
        copied.emplace_back(rank.executor);
        rank.device.copy({buffers.message.address() + at, buffers.staging.address() + at, bytes, 0,
                          device::Engine::automatic},
                         copied.back());
    }
    for (Completion& block : copied) {
        Status status = co_await block;
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

Task<Status> push(Rank& rank, Buffers& buffers, const Setup& setup) {
    const int to = 1 - rank.number;
    switch (setup.method) {
        case Method::gantry: return send(rank, buffers.message.whole(), to, kTag);
        case Method::host_to_host: return send(rank, buffers.staging.whole(), to, kTag);
        default: return push_pipelined(rank, buffers, setup);
    }
}

Task<Status> receive_into(Rank& rank, p2p::Buffer buffer) {
    Received received = co_await receive(rank, buffer, 1 - rank.number, kTag);
    co_return received.status;
}

Task<Status> pull(Rank& rank, Buffers& buffers, const Setup& setup) {
    switch (setup.method) {
        case Method::gantry: return receive_into(rank, buffers.message.whole());
        case Method::host_to_host: return receive_into(rank, buffers.staging.whole());
        default: return pull_pipelined(rank, buffers, setup);
    }
}

enum class Side { sends, receives };
Task<Status> step(Rank& rank, Buffers& buffers, const Setup& setup, Side side) {
    return side == Side::sends ? push(rank, buffers, setup) : pull(rank, buffers, setup);
}

// Rank 0 sends first. The first round warms up: pools are reserved and pinned there.
Task<Status> ping_pong(Rank& rank, Setup& setup) {
    Buffers buffers(rank, setup.places[static_cast<std::size_t>(rank.number)]);
    if (rank.number == 0) {
        buffers.message.fill(1);
        buffers.staging.fill(1);
    }
    Status met = co_await meet(rank, 9);
    GANTRY_CO_TRY(met);
    Nanoseconds begin = 0;
    for (int round = 0; round <= kRounds; ++round) {
        if (round == 1) begin = rank.processor.now();
        Status first =
            co_await step(rank, buffers, setup, rank.number == 0 ? Side::sends : Side::receives);
        GANTRY_CO_TRY(first);
        Status second =
            co_await step(rank, buffers, setup, rank.number == 1 ? Side::sends : Side::receives);
        GANTRY_CO_TRY(second);
    }
    if (rank.number == 0) setup.latency = (rank.processor.now() - begin) / (2 * kRounds);
    WORLD_CHECK(setup.method == Method::host_to_host ? buffers.staging.holds(1, kPublishedBytes)
                                                     : buffers.message.holds(1, kPublishedBytes));
    co_return success();
}

Nanoseconds measure(SharedPinned shared_pinned, Setup setup, std::string* path = nullptr) {
    const auto share_queue = [queues = setup.queues](model::Machine& machine) {
        if (queues == Queues::shared) machine.network.control_max = 0;
    };
    World world({.machine = "c2050-qdr",
                 .ranks = 2,
                 .seed = 1,
                 .copies_through_host = shared_pinned == SharedPinned::without,
                 .change_machine = share_queue});
    const Ending ending = world.run([&setup](Rank& rank) { return ping_pong(rank, setup); });
    if (!ending.good()) {
        std::ostringstream story;
        story << ending;
        std::fprintf(stderr, "the world of the published table: %s\n", story.str().c_str());
        std::abort();
    }
    if (path != nullptr) *path = world.rank(0).explain.text(0);
    return setup.latency;
}

}  // namespace

BlockTime PublishedTable::best_user() const {
    return *std::min_element(
        user_pipeline.begin(), user_pipeline.end(),
        [](const BlockTime& a, const BlockTime& b) { return a.time < b.time; });
}

double PublishedTable::gain(Nanoseconds time, Nanoseconds baseline) {
    return 1 - static_cast<double>(time) / static_cast<double>(baseline);
}

BlockTime measure_user_pipeline(SharedPinned shared_pinned, const std::array<Place, 2>& places) {
    BlockTime best{0, 0};
    for (Bytes block = 16 * kKiB; block <= kPublishedBytes; block *= 2) {
        const Nanoseconds time =
            measure(shared_pinned, {Method::user_pipeline, block, Queues::apart, places});
        if (best.time == 0 || time < best.time) best = {block, time};
    }
    return best;
}

std::vector<PlacedTimes> measure_placements() {
    std::vector<PlacedTimes> all;
    for (const auto& [name, places] : {std::pair{"D-D", std::array{Place::device, Place::device}},
                                       std::pair{"D-H", std::array{Place::device, Place::host}},
                                       std::pair{"H-D", std::array{Place::host, Place::device}}}) {
        PlacedTimes times;
        times.placement = name;
        times.copy_and_send = measure(
            SharedPinned::with, {Method::copy_and_send, kPublishedBytes, Queues::apart, places});
        times.user = measure_user_pipeline(SharedPinned::with, places);
        times.gantry =
            measure(SharedPinned::with, {Method::gantry, kPublishedBytes, Queues::apart, places});
        all.push_back(times);
    }
    return all;
}

PublishedTable measure_published(SharedPinned shared_pinned) {
    PublishedTable table;
    table.host_to_host = measure(shared_pinned, {Method::host_to_host});
    // One block of everything: nothing of it overlaps.
    table.copy_and_send = measure(shared_pinned, {Method::copy_and_send, kPublishedBytes});
    for (Bytes block = 16 * kKiB; block <= kPublishedBytes; block *= 2) {
        table.user_pipeline.push_back(
            {block, measure(shared_pinned, {Method::user_pipeline, block})});
        table.slides_loop.push_back({block, measure(shared_pinned, {Method::slides_loop, block})});
    }
    table.gantry = measure(shared_pinned, {Method::gantry}, &table.gantry_path);
    const Bytes block = table.best_user().block;
    table.gantry_one_queue =
        measure(shared_pinned, {Method::gantry, kPublishedBytes, Queues::shared});
    table.user_one_queue = measure(shared_pinned, {Method::user_pipeline, block, Queues::shared});
    const model::Machine machine = model::load("c2050-qdr").value();
    table.ideal = std::max(machine.network.rate.time(kPublishedBytes),
                           machine.gpu.d2h.rate.time(kPublishedBytes));
    return table;
}

}  // namespace gantry::world
