// SPDX-License-Identifier: BSD-3-Clause
//
// Random one-sided programs against a sequential model. A program is a list of phases, the same for
// all ranks; a phase is one way to synchronise and a list of operations. Slots of a window are shared
// out so that nothing happens which MPI forbids: in one phase a slot is written by one operation, or
// changed by sums of any ranks, or only read. Behind each phase every rank compares its memory, and
// everything that it has read, with the model.
#include "sanitized.hpp"
#include "coll/bcast.hpp"
#include "transfer/buffer.hpp"
#include "world/harness/window_parts.hpp"

#include <algorithm>
#include <cstring>
#include <random>

namespace gantry::world {
namespace {

using Number = std::uint64_t;
constexpr std::size_t kSlots = 96;

enum class Sync : std::uint8_t { fence, exclusive, shared, all, post };
enum class What : std::uint8_t { put, get, sum, fetch, swap };

struct Step {
    int origin, target;
    What what;
    std::size_t slot, count, stride;  // of slots
    bool origin_strided;
    Number value;
};

struct Phase {
    Sync sync;
    std::vector<Step> steps;
    // What each rank's memory holds before and after it.
    std::vector<std::vector<Number>> before, after;
};

struct Plan {
    std::uint64_t seed;
    int ranks;
    rma::Flavor flavor;
    std::vector<Place> places;
    std::vector<Phase> phases;
};

Number written(const Step& step, std::size_t index) {
    return step.value * 1000 + index;
}

std::vector<Step> steps_of(std::mt19937_64& random, int ranks, int target) {
    std::vector<Step> steps;
    // Stretches of slots with one use each.
    for (std::size_t slot = 0; slot < kSlots;) {
        const std::size_t count = 1 + random() % 6, stride = 1 + random() % 3;
        if (slot + count * stride > kSlots) break;
        const auto use = random() % 5;
        const std::size_t users = use < 2 ? 1 : 1 + random() % 4;
        for (std::size_t user = 0; user < users; ++user) {
            Step step{};
            step.origin = static_cast<int>(random() % static_cast<unsigned>(ranks));
            step.target = target;
            step.slot = slot;
            step.count = use == 4 ? 1 : count;
            step.stride = use == 4 ? 1 : stride;
            step.origin_strided = random() % 3 == 0 && use != 4;
            step.value = random() % 100000;
            step.what = use < 2    ? What::put
                        : use == 2 ? What::get
                        : use == 3 ? (random() % 2 == 0 ? What::sum : What::fetch)
                                   : What::swap;
            steps.push_back(step);
        }
        slot += count * stride;
    }
    std::shuffle(steps.begin(), steps.end(), random);
    return steps;
}

Plan plan_of(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Plan plan;
    plan.seed = seed;
    plan.ranks = 2 + static_cast<int>(random() % 3);
    constexpr rma::Flavor flavors[] = {rma::Flavor::create, rma::Flavor::allocate,
                                       rma::Flavor::dynamic};
    plan.flavor = flavors[random() % 3];
    for (int rank = 0; rank < plan.ranks; ++rank)
        plan.places.push_back(plan.flavor == rma::Flavor::allocate ? Place::host
                              : random() % 2 == 0                  ? Place::host
                                                                   : Place::device);
    std::vector<std::vector<Number>> memory(static_cast<std::size_t>(plan.ranks),
                                            std::vector<Number>(kSlots, 0));
    for (int round = 0; round < 6; ++round) {
        Phase phase;
        phase.sync = static_cast<Sync>(random() % 5);
        phase.before = memory;
        for (int target = 0; target < plan.ranks; ++target)
            for (const Step& step : steps_of(random, plan.ranks, target))
                phase.steps.push_back(step);
        for (const Step& step : phase.steps) {
            std::vector<Number>& at = memory[static_cast<std::size_t>(step.target)];
            for (std::size_t i = 0; i < step.count; ++i) {
                Number& slot = at[step.slot + i * step.stride];
                if (step.what == What::put) slot = written(step, i);
                if (step.what == What::sum || step.what == What::fetch) slot += written(step, i);
                // Swaps of one slot: by each who finds what was there before; exactly one does.
            }
        }
        phase.after = memory;
        plan.phases.push_back(std::move(phase));
    }
    return plan;
}

// The layouts of slots, kept as long as the program.
const layout::Layout& slots(std::size_t stride, std::size_t count) {
    static std::map<std::pair<std::size_t, std::size_t>, layout::Layout> made;
    const auto found = made.find({stride, count});
    if (found != made.end()) return found->second;
    std::vector<layout::Block> blocks;
    for (std::size_t i = 0; i < count; ++i)
        blocks.push_back(
            {static_cast<std::ptrdiff_t>(i * stride * sizeof(Number)), sizeof(Number)});
    return made
        .emplace(std::pair{stride, count},
                 layout::listed_layout(static_cast<std::ptrdiff_t>(count * stride * sizeof(Number)),
                                       blocks))
        .first->second;
}

// The buffers of one step at its origin.
struct Buffers {
    Buffers(Rank& rank, const Step& step, Place place)
        : stride(step.origin_strided ? 2 : 1),
          operand(rank, place, 3 * 8 * sizeof(Number)),
          result(rank, place, 3 * 8 * sizeof(Number)),
          compare(rank, place, sizeof(Number)) {}
    std::size_t stride;
    Bytebuffer operand, result, compare;
};

// Numbers into and out of memory of any kind, behind the device's back.
void store(Rank& rank, Bytebuffer& buffer, std::size_t at, Number value) {
    std::byte* memory = rank.device.behind(buffer.address(), buffer.bytes());
    std::memcpy((memory != nullptr ? memory : buffer.address()) + at * sizeof value, &value,
                sizeof value);
}
Number load(Rank& rank, std::byte* address, Bytes bytes, std::size_t at) {
    std::byte* memory = rank.device.behind(address, bytes);
    Number value;
    std::memcpy(&value, (memory != nullptr ? memory : address) + at * sizeof value, sizeof value);
    return value;
}

Result<rma::Side> side(Rank& rank, Bytebuffer& buffer, std::size_t stride, std::size_t count) {
    rma::Side made;
    made.buffer = {buffer.address(), 1, &slots(stride, count)};
    Result<device::Location> location = rank.transfer.locate(made.buffer);
    GANTRY_TRY(location.status());
    made.location = *location;
    return made;
}

Status begin(Rank& rank, rma::Window& window, const Step& step, Buffers& buffers,
             std::uint64_t base, bool dynamic) {
    for (std::size_t i = 0; i < step.count; ++i) {
        store(rank, buffers.operand, i * buffers.stride, written(step, i));
        store(rank, buffers.result, i * buffers.stride, 0);
    }
    rma::Access access;
    constexpr rma::Verb verbs[] = {rma::Verb::put, rma::Verb::get, rma::Verb::accumulate,
                                   rma::Verb::fetch, rma::Verb::compare_and_swap};
    access.verb = verbs[static_cast<int>(step.what)];
    access.target = step.target;
    access.displacement =
        static_cast<std::int64_t>((dynamic ? base : 0) + step.slot * sizeof(Number));
    access.count = 1;
    access.layout = &slots(step.stride, step.count);
    access.bytes = step.count * sizeof(Number);
    access.items = rma::items_of(layout::Element::uint64);
    access.operation = layout::Operation::sum;
    if (step.what == What::swap) access.operation = layout::Operation::replace;
    Bytebuffer& origin = step.what == What::get ? buffers.result : buffers.operand;
    Result<rma::Side> made = side(rank, origin, buffers.stride, step.count);
    GANTRY_TRY(made.status());
    access.origin = *made;
    if (step.what == What::fetch || step.what == What::swap) {
        made = side(rank, buffers.result, buffers.stride, step.count);
        GANTRY_TRY(made.status());
        access.result = *made;
    }
    if (step.what == What::swap) {
        made = side(rank, buffers.compare, 1, 1);
        GANTRY_TRY(made.status());
        access.compare = *made;
    }
    return window.begin(access, nullptr).status();
}

Task<Status> open_epoch(Executor& executor, rma::Window& window, Sync sync) {
    std::vector<int> everybody;
    for (int each = 0; each < window.size(); ++each)
        everybody.push_back(each);
    Status status;
    if (sync == Sync::fence) {
        status = co_await window.fence(executor, 0);
    } else if (sync == Sync::all) {
        status = co_await window.lock_all(executor, rma::Lock::shared);
    } else if (sync == Sync::post) {
        status = co_await window.post(executor, everybody, 0);
        GANTRY_CO_TRY(status);
        status = co_await window.start(executor, everybody, 0);
    }
    co_return status;
}

Task<Status> close_epoch(Executor& executor, rma::Window& window, Sync sync) {
    Status status;
    if (sync == Sync::fence) {
        status = co_await window.fence(executor, MPI_MODE_NOSUCCEED);
    } else if (sync == Sync::all) {
        status = co_await window.unlock_all(executor);
    } else if (sync == Sync::post) {
        status = co_await window.complete(executor);
        GANTRY_CO_TRY(status);
        status = co_await window.wait(executor);
    }
    co_return status;
}

// What was read, against the model.
Task<Status> check_reads(Rank& rank, const Phase& phase, const std::vector<Step>& mine,
                         std::vector<std::unique_ptr<Buffers>>& buffers) {
    for (std::size_t n = 0; n < mine.size(); ++n) {
        const Step& step = mine[n];
        if (step.what != What::get) continue;
        for (std::size_t i = 0; i < step.count; ++i) {
            const Number got = load(rank, buffers[n]->result.address(), buffers[n]->result.bytes(),
                                    i * buffers[n]->stride);
            const Number wanted =
                phase.before[static_cast<std::size_t>(step.target)][step.slot + i * step.stride];
            if (got != wanted)
                co_return failure(
                    MPI_ERR_OTHER,
                    "epoch kind {}: read {} where {} is at rank {}, slot {}, number {} of "
                    "{} with stride {}",
                    static_cast<int>(phase.sync), got, wanted, step.target, step.slot, i,
                    step.count, step.stride);
        }
    }
    co_return success();
}

Task<Status> run_phase(Rank& rank, rma::Window& window, const Plan& plan, const Phase& phase,
                       const std::vector<std::uint64_t>& bases, int number) {
    std::vector<Step> mine;
    for (const Step& step : phase.steps)
        if (step.origin == rank.number) mine.push_back(step);
    std::mt19937_64 random(plan.seed * 977 + static_cast<unsigned>(number));
    std::vector<std::unique_ptr<Buffers>> buffers;
    const bool dynamic = plan.flavor == rma::Flavor::dynamic;
    Status status = co_await open_epoch(rank.executor, window, phase.sync);
    GANTRY_CO_TRY(status);
    const bool by_target = phase.sync == Sync::exclusive || phase.sync == Sync::shared;
    if (by_target)
        std::stable_sort(mine.begin(), mine.end(),
                         [](const Step& a, const Step& b) { return a.target < b.target; });
    int locked = -1;
    for (const Step& step : mine) {
        if (by_target && step.target != locked) {
            if (locked >= 0) {
                status = co_await window.unlock(rank.executor, locked);
                GANTRY_CO_TRY(status);
            }
            locked = step.target;
            const rma::Lock kind =
                phase.sync == Sync::exclusive ? rma::Lock::exclusive : rma::Lock::shared;
            status = co_await window.lock(rank.executor, locked, kind);
            GANTRY_CO_TRY(status);
        }
        buffers.push_back(
            std::make_unique<Buffers>(rank, step, random() % 3 == 0 ? Place::device : Place::host));
        store(rank, buffers.back()->compare, 0,
              phase.before[static_cast<std::size_t>(step.target)][step.slot]);
        status = begin(rank, window, step, *buffers.back(),
                       bases[static_cast<std::size_t>(step.target)], dynamic);
        GANTRY_CO_TRY(status);
        if ((by_target || phase.sync == Sync::all) && random() % 5 == 0) {
            status = co_await window.flush(rank.executor, step.target);
            GANTRY_CO_TRY(status);
        }
    }
    if (locked >= 0) {
        status = co_await window.unlock(rank.executor, locked);
        GANTRY_CO_TRY(status);
    }
    status = co_await close_epoch(rank.executor, window, phase.sync);
    GANTRY_CO_TRY(status);
    status = co_await check_reads(rank, phase, mine, buffers);
    co_return status;
}

Task<Status> random_program(Rank& rank, const Plan& plan) {
    const Place place = plan.places[static_cast<std::size_t>(rank.number)];
    Bytebuffer memory(rank, place, kSlots * sizeof(Number));
    for (std::size_t slot = 0; slot < kSlots; ++slot)
        store(rank, memory, slot, 0);
    rma::Wanted wanted;
    wanted.flavor = plan.flavor;
    wanted.base = memory.address();
    wanted.bytes = plan.flavor == rma::Flavor::dynamic ? 0 : memory.bytes();
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, wanted, &window);
    GANTRY_CO_TRY(status);
    std::byte* const base = plan.flavor == rma::Flavor::allocate
                                ? reinterpret_cast<std::byte*>(window->mine().base)
                                : memory.address();
    if (plan.flavor == rma::Flavor::allocate) std::memset(base, 0, memory.bytes());
    if (plan.flavor == rma::Flavor::dynamic) {
        status = window->attach(base, memory.bytes());
        GANTRY_CO_TRY(status);
    }
    std::vector<std::uint64_t> bases(static_cast<std::size_t>(plan.ranks));
    for (int each = 0; each < plan.ranks; ++each) {
        std::uint64_t told = reinterpret_cast<std::uintptr_t>(base);
        const p2p::Buffer number = transfer::bytes_buffer(&told, sizeof told);
        const coll::Team team{&rank.messenger, &rank.transfer, &rank.all, 5000 + each};
        status = co_await coll::bcast(rank.executor, team, number, each);
        GANTRY_CO_TRY(status);
        bases[static_cast<std::size_t>(each)] = told;
    }
    for (std::size_t number = 0; number < plan.phases.size(); ++number) {
        const Phase& phase = plan.phases[number];
        const int tag = 100 + 10 * static_cast<int>(number);
        status = co_await run_phase(rank, *window, plan, phase, bases, static_cast<int>(number));
        GANTRY_CO_TRY(status);
        status = co_await meet(rank, tag);
        GANTRY_CO_TRY(status);
        std::vector<bool> swapped(kSlots, false);
        for (const Step& step : phase.steps)
            if (step.what == What::swap && step.target == rank.number) swapped[step.slot] = true;
        for (std::size_t slot = 0; slot < kSlots; ++slot) {
            const Number found = load(rank, base, memory.bytes(), slot);
            const Number expected = phase.after[static_cast<std::size_t>(rank.number)][slot];
            if (!swapped[slot]) {
                WORLD_CHECK(found == expected);
                continue;
            }
            // One of those who compared with what was there has swapped.
            bool is_one = false;
            for (const Step& step : phase.steps)
                is_one = is_one || (step.what == What::swap && step.target == rank.number &&
                                    step.slot == slot && found == written(step, 0));
            WORLD_CHECK(is_one);
            // The model goes on with what was there.
            std::byte* stored = rank.device.behind(base, memory.bytes());
            std::memcpy((stored != nullptr ? stored : base) + slot * sizeof expected, &expected,
                        sizeof expected);
        }
        status = co_await meet(rank, tag + 1);
        GANTRY_CO_TRY(status);
    }
    status = co_await window->close(rank.executor);
    co_return status;
}

void run_seeds(std::uint64_t first, std::uint64_t last, const Options& like) {
    const auto some = static_cast<std::uint64_t>(repetitions(static_cast<int>(last - first + 1)));
    for (std::uint64_t seed = first; seed < first + some; ++seed) {
        const Plan plan = plan_of(seed);
        Options options = like;
        options.ranks = plan.ranks;
        options.seed = seed;
        options.ranks_per_node = 1 + static_cast<int>(seed % static_cast<unsigned>(plan.ranks));
        World world(options);
        const Ending ending = world.run([&plan](Rank& rank) { return random_program(rank, plan); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
    }
}

// Everybody works at rank 1, which dies. Who does so hears of it, and nobody waits for ever.
Task<Status> work_at_a_rank_that_dies(Rank& rank, std::uint64_t seed) {
    std::mt19937_64 random(seed * 31 + static_cast<unsigned>(rank.number));
    rma::Wanted wanted;
    wanted.flavor = seed % 2 == 0 ? rma::Flavor::allocate : rma::Flavor::create;
    Bytebuffer memory(rank, seed % 3 == 0 ? Place::device : Place::host, kSlots * sizeof(Number));
    wanted.base = memory.address();
    wanted.bytes = memory.bytes();
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, wanted, &window);
    for (int round = 0; round < 400 && status.ok(); ++round) {
        Step step{};
        step.target = random() % 4 == 0 ? rank.number : 1;
        step.what = static_cast<What>(random() % 4);
        step.count = 1 + random() % 6;
        step.stride = 1;
        Buffers buffers(rank, step, Place::host);
        const rma::Lock kind = random() % 2 == 0 ? rma::Lock::exclusive : rma::Lock::shared;
        status = co_await window->lock(rank.executor, step.target, kind);
        if (!status.ok()) break;
        Status begun = begin(rank, *window, step, buffers, 0, false);
        Status slept = co_await rank.sleep(rank.executor, 2 * kMicrosecond);
        status = co_await window->unlock(rank.executor, step.target);
        if (status.ok()) status = begun;
        if (status.ok()) status = slept;
    }
    if (rank.number != 1) {
        WORLD_CHECK(!status.ok());
        WORLD_CHECK(status.error_class() == MPI_ERR_PROC_ABORTED);
    }
    if (window != nullptr) {
        Status closed = co_await window->close(rank.executor);
        WORLD_CHECK(!closed.ok());
    }
    co_return success();
}

TEST(Rma, WhoWorksAtARankThatDiesHearsOfIt) {
    for (std::uint64_t seed = 1; seed <= repetitions(40); ++seed) {
        World world({.ranks = 3,
                     .ranks_per_node = 1 + static_cast<int>(seed % 3),
                     .seed = seed,
                     .jitter = 5 * kMicrosecond,
                     .change_config = [seed](config::Config& config) {
                         if (seed % 2 == 0) config.window_rendezvous = 1;
                     }});
        world.kill_at(static_cast<Nanoseconds>(200 + seed * 7) * kMicrosecond, 1);
        const Ending ending =
            world.run([seed](Rank& rank) { return work_at_a_rank_that_dies(rank, seed); });
        ASSERT_TRUE(ending.good()) << ending;
    }
}

TEST(Rma, RandomProgramsDoWhatTheSequentialModelDoes) {
    run_seeds(1, 60, {});
}

// Everything that may go straight does, over two rails.
TEST(Rma, RandomProgramsDoSoWhereAllPutsGoStraight) {
    Options straight{.jitter = 30 * kMicrosecond,
                     .network_order = transport::fake::Order::shuffled,
                     .duplicate_envelopes = true};
    straight.change_config = [](config::Config& config) { config.window_rdma = 1; };
    straight.change_machine = [](model::Machine& machine) { machine.network.rails = 2; };
    run_seeds(201, 240, straight);
    // Small ones alone, each by itself.
    straight.change_config = [](config::Config& config) { config.window_batch = 0; };
    run_seeds(241, 260, straight);
}

// Everything that may be announced is, whatever its datatype.
TEST(Rma, RandomProgramsDoSoWhereAllOperationsGoByRendezvous) {
    Options announced{.jitter = 30 * kMicrosecond,
                      .network_order = transport::fake::Order::shuffled,
                      .shared_memory_order = transport::fake::Order::shuffled,
                      .duplicate_envelopes = true};
    announced.change_config = [](config::Config& config) {
        config.window_rdma = 0;
        config.window_rendezvous = 1;
    };
    run_seeds(301, 340, announced);
}

TEST(Rma, RandomProgramsDoSoWhereFewAndSmallMessagesArePending) {
    Options few{.jitter = 30 * kMicrosecond};
    few.change_config = [](config::Config& config) {
        config.window_pending = 4;
        config.window_pending_bytes = 4096;
        config.window_piece = 64;
        config.window_batch = 0;
    };
    run_seeds(401, 440, few);
}

TEST(Rma, RandomProgramsDoSoOnARoughNetworkToo) {
    Options rough{.jitter = 30 * kMicrosecond,
                  .network_order = transport::fake::Order::shuffled,
                  .shared_memory_order = transport::fake::Order::shuffled,
                  .duplicate_envelopes = true};
    run_seeds(101, 160, rough);
}

}  // namespace
}  // namespace gantry::world
