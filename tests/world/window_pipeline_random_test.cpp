// SPDX-License-Identifier: BSD-3-Clause
//
// Random large puts and gets between nodes whose network does not reach device memory. Every rank puts
// parts of any size, strided or not, into its own share of every rank's memory, and reads them again.
#include "sanitized.hpp"
#include "world/harness/window_parts.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace gantry::world {
namespace {

using rma::Verb;

constexpr Bytes kShare = 768 * kKiB;

enum class Sync : std::uint8_t { fence, lock, all, post };

Task<Status> open_epoch(Executor& executor, rma::Window& window, Sync sync) {
    std::vector<int> everybody;
    for (int each = 0; each < window.size(); ++each)
        everybody.push_back(each);
    Status status;
    if (sync == Sync::fence) status = co_await window.fence(executor, 0);
    if (sync == Sync::all) status = co_await window.lock_all(executor, rma::Lock::shared);
    if (sync != Sync::post) co_return status;
    status = co_await window.post(executor, everybody, 0);
    GANTRY_CO_TRY(status);
    status = co_await window.start(executor, everybody, 0);
    co_return status;
}

Task<Status> close_epoch(Executor& executor, rma::Window& window, Sync sync) {
    Status status;
    if (sync == Sync::fence) status = co_await window.fence(executor, MPI_MODE_NOSUCCEED);
    if (sync == Sync::all) status = co_await window.unlock_all(executor);
    if (sync != Sync::post) co_return status;
    status = co_await window.complete(executor);
    GANTRY_CO_TRY(status);
    status = co_await window.wait(executor);
    co_return status;
}

// Parts of my share of that rank's memory that do not overlap, each strided alike at both ends or in
// one run.
std::vector<Part> parts_of(std::mt19937_64& random, int me, int target) {
    std::vector<Part> parts;
    const Bytes begin = static_cast<Bytes>(me) * kShare;
    for (Bytes at = 8 * (random() % 64); at < kShare;) {
        Part part;
        part.target = target;
        part.offset = begin + at;
        const bool strided = random() % 3 == 0;
        part.strided_here = part.strided_there = strided;
        const Bytes room = kShare - at;
        if (strided) {
            const Bytes rows = 1 + random() % 300;
            if (rows * 1024 > room) break;
            part.bytes = rows * 512;
            at += rows * 1024;
        } else {
            part.bytes = std::min<Bytes>(room, 1 + random() % (random() % 4 == 0 ? 400000 : 3000));
            at += part.bytes;
        }
        at += random() % 5000;
        parts.push_back(part);
    }
    std::shuffle(parts.begin(), parts.end(), random);
    return parts;
}

struct Random {
    std::uint64_t seed = 1;
    Place of_window = Place::device;
    bool dynamic = false;
};

Task<Status> all_parts(Rank& rank, rma::Window& window, Sync sync, Verb verb, Bytebuffer& origin,
                       const std::vector<std::vector<Part>>& parts,
                       const std::vector<std::uint64_t>& bases) {
    Status status = co_await open_epoch(rank.executor, window, sync);
    GANTRY_CO_TRY(status);
    for (const std::vector<Part>& of_target : parts) {
        const int target = of_target.front().target;
        if (sync == Sync::lock)
            status = co_await window.lock(rank.executor, target, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        for (Part part : of_target) {
            part.verb = verb;
            part.base = bases[static_cast<std::size_t>(target)];
            GANTRY_CO_TRY(begin(rank, window, origin, part));
        }
        if (sync == Sync::all && target == 0) {
            status = co_await window.flush(rank.executor, target);
            GANTRY_CO_TRY(status);
        }
        if (sync == Sync::lock) status = co_await window.unlock(rank.executor, target);
        GANTRY_CO_TRY(status);
    }
    status = co_await close_epoch(rank.executor, window, sync);
    co_return status;
}

// What one rank puts at every rank is one image of its share, so what is read from anywhere is that.
Task<Status> random_program(Rank& rank, Random program) {
    std::mt19937_64 random(program.seed * 131 + static_cast<unsigned>(rank.number));
    std::mt19937_64 shared(program.seed);
    const Bytes bytes = kShare * static_cast<Bytes>(rank.world.ranks());
    Bytebuffer memory(rank, program.of_window, bytes), origin(rank, Place::device, bytes),
        again(rank, Place::device, bytes);
    std::unique_ptr<rma::Window> window;
    Status status;
    if (program.dynamic)
        status = co_await open_dynamic_window(rank, &window);
    else
        status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (program.dynamic) GANTRY_CO_TRY(window->attach(memory.address(), memory.bytes()));
    std::vector<std::uint64_t> bases;
    for (int each = 0; each < rank.world.ranks(); ++each)
        bases.push_back(0);
    if (program.dynamic)
        for (int each = 0; each < rank.world.ranks(); ++each) {
            std::uint64_t told = reinterpret_cast<std::uintptr_t>(memory.address());
            static const layout::Layout number = layout::contiguous_layout(sizeof told);
            const p2p::Buffer buffer{&told, 1, &number};
            for (int other = 0; other < rank.world.ranks(); ++other) {
                if (other == each) continue;
                if (rank.number == each) {
                    status = co_await send(rank, buffer, other, 900 + each);
                } else if (rank.number == other) {
                    Received got = co_await receive(rank, buffer, each, 900 + each);
                    status = std::move(got.status);
                }
                GANTRY_CO_TRY(status);
            }
            bases[static_cast<std::size_t>(each)] = told;
        }
    for (int round = 0; round < 3; ++round) {
        const auto sync = static_cast<Sync>(shared() % 4), back = static_cast<Sync>(shared() % 4);
        origin.fill(static_cast<std::uint64_t>(10 * round + rank.number));
        again.clear();
        std::vector<std::vector<Part>> parts;
        for (int target = 0; target < rank.world.ranks(); ++target)
            parts.push_back(parts_of(random, rank.number, target));
        status = co_await all_parts(rank, *window, sync, Verb::put, origin, parts, bases);
        GANTRY_CO_TRY(status);
        // Of one target, or what is read would be read twice.
        std::vector<std::vector<Part>> one{parts[random() % parts.size()]};
        status = co_await all_parts(rank, *window, back, Verb::get, again, one, bases);
        GANTRY_CO_TRY(status);
        const std::byte* const put = rank.device.behind(origin.address(), bytes);
        const std::byte* const got = rank.device.behind(again.address(), bytes);
        for (const Part& part : one.front()) {
            const Bytes width = part.strided_here ? 512 : part.bytes;
            for (Bytes done = 0, at = part.offset; done < part.bytes; done += width, at += 1024)
                WORLD_CHECK(std::memcmp(put + at, got + at, width) == 0);
        }
        status = co_await meet(rank, 100 + round);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

void run_seeds(std::uint64_t first, std::uint64_t last, const Options& like) {
    const auto some = static_cast<std::uint64_t>(repetitions(static_cast<int>(last - first + 1)));
    for (std::uint64_t seed = first; seed < first + some; ++seed) {
        Options options = like;
        options.ranks = 2 + static_cast<int>(seed % 2);
        options.seed = seed;
        const Random program{seed, seed % 5 == 0 ? Place::host : Place::device, seed % 3 == 0};
        World world(options);
        const Ending ending =
            world.run([program](Rank& rank) { return random_program(rank, program); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
    }
}

TEST(WindowPipelineRandom, RandomPartsOfSeveralOriginsArriveWhole) {
    run_seeds(1, 8, {});
}

TEST(WindowPipelineRandom, RandomPartsArriveWholeOnARoughNetwork) {
    Options rough{.jitter = 30 * kMicrosecond,
                  .network_order = transport::fake::Order::shuffled,
                  .duplicate_envelopes = true};
    rough.change_machine = [](model::Machine& machine) { machine.network.rails = 2; };
    run_seeds(21, 26, rough);
}

TEST(WindowPipelineRandom, RandomPartsArriveWholeThroughFewSlots) {
    Options few;
    few.change_config = [](config::Config& config) { config.device_pool = 8 * 64 * kKiB; };
    run_seeds(41, 44, few);
}

}  // namespace
}  // namespace gantry::world
