// SPDX-License-Identifier: BSD-3-Clause
//
// Large puts and gets between nodes whose network does not reach device memory: announced, and through
// the slots of both sides in a pipeline.
#include "rma/windows.hpp"
#include "world/harness/programs.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

namespace gantry::world {
namespace {

using rma::Verb;

Task<Status> open(Executor& executor, Rank& rank, Bytebuffer& memory, bool dynamic,
                  std::unique_ptr<rma::Window>* window) {
    p2p::Group group = rank.all;
    group.context = 77 | p2p::kCollectiveContext;
    rma::Wanted wanted;
    if (dynamic) {
        wanted.flavor = rma::Flavor::dynamic;
    } else {
        wanted.base = memory.address();
        wanted.bytes = memory.bytes();
    }
    Status made = co_await rank.windows.create(executor, group, wanted, window);
    GANTRY_CO_TRY(made);
    if (dynamic) made = (*window)->attach(memory.address(), memory.bytes());
    co_return made;
}

// All bytes of a run, or 512 of each 1024.
const layout::Layout& bytes_layout(bool strided) {
    static const layout::Layout byte = layout::contiguous_layout(1);
    static const layout::Block half[] = {{0, 512}};
    static const layout::Layout rows = layout::listed_layout(1024, half);
    return strided ? rows : byte;
}

// `bytes` of the run at `offset` of both buffers, strided or not at either end.
struct Part {
    Verb verb = Verb::put;
    int target = 1;
    Bytes offset = 0, bytes = 0;
    bool strided_here = false, strided_there = false;
};

Result<rma::Access> access_to(Rank& rank, Bytebuffer& origin, std::uint64_t base,
                              const Part& part) {
    rma::Access access;
    access.verb = part.verb;
    access.target = part.target;
    const layout::Layout& here = bytes_layout(part.strided_here);
    access.layout = &bytes_layout(part.strided_there);
    access.origin.buffer = {origin.address() + part.offset, part.bytes / here.size, &here};
    Result<device::Location> location = rank.transfer.locate(access.origin.buffer);
    GANTRY_TRY(location.status());
    access.origin.location = *location;
    access.displacement = static_cast<std::int64_t>(base + part.offset);
    access.count = part.bytes / access.layout->size;
    access.bytes = part.bytes;
    return access;
}

Status begin(Rank& rank, rma::Window& window, Bytebuffer& origin, const Part& part,
             Completion* done = nullptr, std::uint64_t base = 0) {
    Result<rma::Access> access = access_to(rank, origin, base, part);
    GANTRY_TRY(access.status());
    return window.begin(*access, done).status();
}

// Rank 0 puts all of its buffer at rank 1, and reads it again.
Task<Status> put_and_get(Rank& rank, Bytes bytes, Place place, Place of_window) {
    Bytebuffer memory(rank, of_window, bytes), origin(rank, place, bytes),
        again(rank, place, bytes);
    origin.fill(7);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open(rank.executor, rank, memory, false, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = bytes}));
        status = co_await window->flush(rank.executor, 1);
        GANTRY_CO_TRY(status);
        GANTRY_CO_TRY(begin(rank, *window, again, {.verb = Verb::get, .bytes = bytes}));
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
        WORLD_CHECK(again.holds(7, bytes));
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(7, bytes));
    co_return success();
}

Bytes copied(World& world, int rank, model::Operation way) {
    return world.rank(rank).device.counts().bytes[static_cast<int>(way)];
}

// Each byte is copied once out of the device that holds it, once into a slot of the peer, and once into
// the device that gets it.
TEST(WindowPipeline, EachByteIsCopiedOnceOnEachSide) {
    constexpr Bytes kBytes = 4 * kMiB + 8;
    World world({});
    const Ending ending = world.run(
        [](Rank& rank) { return put_and_get(rank, kBytes, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    for (const int rank : {0, 1}) {
        EXPECT_EQ(copied(world, rank, model::Operation::d2h), kBytes) << rank;
        EXPECT_EQ(copied(world, rank, model::Operation::h2d), kBytes) << rank;
    }
    const transport::fake::Fabric& network = world.network();
    EXPECT_EQ(network.puts().payload_bytes, 2 * kBytes);
    EXPECT_EQ(network.count(rma::wire::kAnnouncedPut).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kPutEnded).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kAnnouncedGet).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kAnswerFollows).messages, 1u);
    EXPECT_EQ(network.count(rma::wire::kPut).messages, 0u);
    EXPECT_EQ(network.count(rma::wire::kGet).messages, 0u);
    EXPECT_EQ(network.count(rma::wire::kAnswer).messages, 0u);
}

// A device at either end is enough; a put into host memory that the network reaches needs no target.
TEST(WindowPipeline, OneEndInDeviceMemoryIsEnough) {
    constexpr Bytes kBytes = kMiB;
    for (const Place place : {Place::host, Place::device}) {
        const Place other = place == Place::host ? Place::device : Place::host;
        World world({});
        const Ending ending = world.run(
            [place, other](Rank& rank) { return put_and_get(rank, kBytes, place, other); });
        ASSERT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle());
        const unsigned puts = other == Place::device ? 1 : 0;
        EXPECT_EQ(world.network().count(rma::wire::kAnnouncedPut).messages, puts);
        EXPECT_EQ(world.network().count(rma::wire::kAnnouncedGet).messages, 1u);
        EXPECT_EQ(world.network().count(rma::wire::kGet).messages, 0u);
    }
}

TEST(WindowPipeline, WhereCardsReachDeviceMemoryNothingIsAnnounced) {
    World world({.machine = "h200", .change_machine = [](model::Machine& machine) {
                     machine.network.device_memory = true;
                 }});
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().count(rma::wire::kAnnouncedPut).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kAnnouncedGet).messages, 0u);
}

TEST(WindowPipeline, TheUserCanHaveMessagesInstead) {
    World world({.change_config = [](config::Config& config) { config.window_rendezvous = 0; }});
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_EQ(world.network().count(rma::wire::kAnnouncedPut).messages, 0u);
    EXPECT_EQ(world.network().count(rma::wire::kPut).payload_bytes, kMiB);
}

TEST(WindowPipeline, ExplainSaysHowSuchOperationsTravel) {
    World world({});
    const Ending ending =
        world.run([](Rank& rank) { return put_and_get(rank, kMiB, Place::device, Place::device); });
    ASSERT_TRUE(ending.good()) << ending;
    const std::string text = world.rank(0).explain.text(0);
    EXPECT_NE(text.find("are announced from 131072 on"), std::string::npos) << text;
    EXPECT_NE(text.find("pipeline"), std::string::npos) << text;
}

// The buffer of a put is the program's when flush_local returns; at the target it may not be yet.
Task<Status> end_here_first(Rank& rank, Nanoseconds* here, Nanoseconds* there) {
    constexpr Bytes kBytes = 4 * kMiB;
    Bytebuffer memory(rank, Place::device, kBytes), origin(rank, Place::device, kBytes);
    origin.fill(3);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open(rank.executor, rank, memory, false, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::exclusive);
        GANTRY_CO_TRY(status);
        GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = kBytes}));
        status = co_await window->flush_local(rank.executor, 1);
        GANTRY_CO_TRY(status);
        *here = rank.processor.now();
        origin.fill(4);  // too late to be put
        status = co_await window->flush(rank.executor, 1);
        GANTRY_CO_TRY(status);
        *there = rank.processor.now();
        WORLD_CHECK(rank.world.rank(1).device.pending() == false);
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(3, kBytes));
    co_return success();
}

TEST(WindowPipeline, AnEndHereIsNoEndThere) {
    Nanoseconds here = 0, there = 0;
    World world({});
    const Ending ending =
        world.run([&](Rank& rank) { return end_here_first(rank, &here, &there); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_LT(here, there);
}

// --- random programs: every rank puts into its own part of every rank's memory, and reads it again.

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
            GANTRY_CO_TRY(begin(rank, window, origin, part, nullptr,
                                bases[static_cast<std::size_t>(target)]));
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
    Status status = co_await open(rank.executor, rank, memory, program.dynamic, &window);
    GANTRY_CO_TRY(status);
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
    for (std::uint64_t seed = first; seed <= last; ++seed) {
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

TEST(WindowPipeline, RandomPartsOfSeveralOriginsArriveWhole) {
    run_seeds(1, 8, {});
}

TEST(WindowPipeline, RandomPartsArriveWholeOnARoughNetwork) {
    Options rough{.jitter = 30 * kMicrosecond,
                  .network_order = transport::fake::Order::shuffled,
                  .duplicate_envelopes = true};
    rough.change_machine = [](model::Machine& machine) { machine.network.rails = 2; };
    run_seeds(21, 26, rough);
}

TEST(WindowPipeline, RandomPartsArriveWholeThroughFewSlots) {
    Options few;
    few.change_config = [](config::Config& config) { config.device_pool = 8 * 64 * kKiB; };
    run_seeds(41, 44, few);
}

// --- failures

// Ranks 0 and 2 work at rank 1. Whoever hears of a failure goes on, so that nobody waits in vain.
Task<Status> round_at_one(Rank& rank, rma::Window& window, int round, Bytebuffer& origin,
                          Bytebuffer& again) {
    const Bytes part = origin.bytes() / 2, mine = rank.number == 2 ? part : 0;
    const bool works = rank.number != 1, passive = round % 2 == 0;
    Status failed, status;
    const auto note = [&failed](Status of) {
        if (failed.ok()) failed = std::move(of);
    };
    origin.fill(static_cast<std::uint64_t>(10 * round + rank.number));
    if (passive && works) {
        status = co_await window.lock(rank.executor, 1, rma::Lock::shared);
        const bool locked = status.ok();
        note(std::move(status));
        if (locked) {
            note(begin(rank, window, origin, {.offset = mine, .bytes = part}));
            status = co_await window.flush(rank.executor, 1);
            note(std::move(status));
            note(begin(rank, window, again, {.verb = Verb::get, .offset = mine, .bytes = part}));
            status = co_await window.unlock(rank.executor, 1);
            note(std::move(status));
        }
    }
    for (const Verb verb : {Verb::put, Verb::get}) {
        status = co_await window.fence(rank.executor, 0);
        note(std::move(status));
        if (!works || passive) continue;
        Bytebuffer& buffer = verb == Verb::put ? origin : again;
        note(begin(rank, window, buffer, {.verb = verb, .offset = mine, .bytes = part}));
    }
    status = co_await window.fence(rank.executor, MPI_MODE_NOSUCCEED);
    note(std::move(status));
    if (works && failed.ok())
        WORLD_CHECK(std::memcmp(rank.device.behind(again.address() + mine, part),
                                rank.device.behind(origin.address() + mine, part), part) == 0);
    co_return failed;
}

Task<Status> two_at_one(Rank& rank) {
    constexpr Bytes kAll = 1200 * kKiB;
    Bytebuffer memory(rank, Place::device, kAll), origin(rank, Place::device, kAll),
        again(rank, Place::device, kAll);
    std::unique_ptr<rma::Window> window;
    Status failed = co_await open(rank.executor, rank, memory, false, &window);
    GANTRY_CO_TRY(failed);
    for (int round = 0; round < 4; ++round) {
        Status status = co_await round_at_one(rank, *window, round, origin, again);
        if (failed.ok()) failed = std::move(status);
    }
    Status closed = co_await window->close(rank.executor);
    co_return failed.ok() ? closed : failed;
}

Options three(std::uint64_t seed) {
    Options options{.ranks = 3, .seed = seed};
    options.change_machine = [](model::Machine& machine) { machine.network.rails = 2; };
    return options;
}

TEST(WindowPipeline, RailsThatFailAtAnyStepLoseNothing) {
    std::uint64_t repeats = 0;
    Nanoseconds whole = 0;
    for (int step = -1; step < 30; ++step) {
        World world(three(static_cast<std::uint64_t>(step + 2)));
        if (step >= 0)
            world.timeline().at(whole * step / 30, [&] {
                world.network().fail_rail(step % 3, step / 3 % 2, 500 * kMicrosecond);
            });
        const Ending ending = world.run([](Rank& rank) { return two_at_one(rank); });
        ASSERT_TRUE(ending.good()) << "step " << step << ": " << ending;
        EXPECT_TRUE(world.settle()) << "step " << step;
        if (step < 0) whole = ending.time;
        for (int each = 0; each < 3; ++each)
            repeats += world.rank(each).transfer.rails.repeats();
    }
    EXPECT_GT(repeats, 0u);
}

// Whoever it is: those who worked with it hear of it, and nobody waits for ever.
TEST(WindowPipeline, ARankThatDiesAtAnyStepIsAnErrorOfTheOthers) {
    for (const int victim : {1, 0}) {
        Nanoseconds whole = 0;
        for (int step = -1; step < 20; ++step) {
            World world(three(static_cast<std::uint64_t>(step + 2)));
            // The first steps are those in which the window is made.
            if (step >= 0) world.kill_at(whole * (step + 2) / 24, victim);
            const Ending ending = world.run([](Rank& rank) { return two_at_one(rank); });
            EXPECT_FALSE(ending.stuck) << "step " << step << ": " << ending;
            if (step < 0)
                whole = ending.time;
            else
                EXPECT_FALSE(ending.of(1 - victim).ok()) << "step " << step << ": " << ending;
        }
    }
}

// A copy that fails on either side is an error of the origin's next synchronisation, and of nobody else.
Task<Status> meet_a_failing_copy(Rank& rank, int failing) {
    constexpr Bytes kBytes = kMiB;
    Bytebuffer memory(rank, Place::device, kBytes), origin(rank, Place::device, kBytes);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open(rank.executor, rank, memory, false, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        for (const Verb verb : {Verb::put, Verb::get}) {
            rank.world.rank(failing).device.faults.fail_copy = 1;
            GANTRY_CO_TRY(begin(rank, *window, origin, {.verb = verb, .bytes = kBytes}));
            Status failed = co_await window->flush(rank.executor, 1);
            WORLD_CHECK(!failed.ok());
            origin.fill(5);
            GANTRY_CO_TRY(begin(rank, *window, origin, {.bytes = kBytes}));
            status = co_await window->flush(rank.executor, 1);
            GANTRY_CO_TRY(status);
        }
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(5, kBytes));
    co_return success();
}

TEST(WindowPipeline, ACopyThatFailsIsAnErrorAndHoldsNobodyUp) {
    for (const int failing : {0, 1}) {
        World world({});
        const Ending ending =
            world.run([failing](Rank& rank) { return meet_a_failing_copy(rank, failing); });
        ASSERT_TRUE(ending.good()) << failing << ": " << ending;
        EXPECT_TRUE(world.settle()) << failing;
    }
}

}  // namespace
}  // namespace gantry::world
