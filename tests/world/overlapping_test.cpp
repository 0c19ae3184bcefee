// SPDX-License-Identifier: BSD-3-Clause
//
// Collectives that overlap, in the first rounds of a job: every pair of operations, and random programs of
// nonblocking, persistent and blocking ones on several communicators. Ranks call them in the same order but
// not at the same time, so they meet, measure and end in orders that are each rank's own.
//
// What a program does comes from a seed, alike on all ranks; what a rank does in between (how long it sleeps
// or computes, what it waits for first) from another one.
#include "all.hpp"
#include "base/scope.hpp"
#include "base/first_failure.hpp"
#include "sanitized.hpp"
#include "world/harness/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>

namespace gantry::world {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t end) {
    return static_cast<std::size_t>(random() % end);
}
bool one_of(Random& random, std::size_t many) {
    return below(random, many) == 0;
}

enum class Form : std::uint8_t { blocking, nonblocking, persistent };

struct Call {
    std::size_t communicator = 0;
    Form form = Form::nonblocking;
    What what;
};

struct Script {
    std::uint64_t seed = 1;
    int ranks = 3, ranks_per_node = 3;
    plan::Algorithm fixed = plan::Algorithm::automatic;
    std::vector<std::vector<int>> members;  // of each communicator, as world ranks
    std::vector<Call> persistent;           // made first, each started several times
    std::vector<std::vector<Call>> rounds;  // in each at most one blocks: the last one
};

std::string describe(const Script& script) {
    std::string text = fmt::format("{} ranks, {} a node, {}", script.ranks, script.ranks_per_node,
                                   name(script.fixed));
    const auto add = [&](const Call& call) {
        constexpr std::string_view kForms[] = {"", "I", "P"};
        text += fmt::format("\n  {}{} on communicator {}", kForms[static_cast<int>(call.form)],
                            describe(call.what), call.communicator);
    };
    std::ranges::for_each(script.persistent, add);
    for (const std::vector<Call>& round : script.rounds)
        std::ranges::for_each(round, add);
    return text;
}

// --- what a rank does ----------------------------------------------------------------------------

// An operation that was started, and is waited for some time.
struct Pending {
    Pending(Executor& executor, Operation* its_operation)
        : scope(executor), operation(its_operation) {}
    Scope scope;
    Operation* operation;
};

Task<Status> finish(Executor& executor, Pending& pending) {
    Status ended = co_await pending.scope.join(executor);
    GANTRY_CO_TRY(ended);
    if (!pending.operation->is_right())
        co_return failure(MPI_ERR_OTHER, "wrong numbers: {}", describe(pending.operation->what()));
    co_return success();
}

Task<Status> pass_some_time(Rank& rank, Random& dice) {
    switch (below(dice, 4)) {
        case 0: rank.work(static_cast<Nanoseconds>(below(dice, 30) * kMicrosecond)); break;
        case 1: {
            const auto time = static_cast<Nanoseconds>(1 + below(dice, 60) * kMicrosecond);
            Status slept = co_await rank.sleep(rank.executor, time);
            co_return slept;
        }
        case 2: co_await rank.turn(); break;
        default: break;
    }
    co_return success();
}

// All that a rank has of a script.
struct Player {
    Player(Rank& its_rank, const Script& its_script)
        : rank(its_rank),
          script(its_script),
          dice(its_script.seed * 1000 + static_cast<std::uint64_t>(its_rank.number)) {
        for (std::size_t i = 0; i < script.members.size(); ++i) {
            communicators.emplace_back();
            if (!std::ranges::count(script.members[i], rank.number)) continue;
            communicators.back() = std::make_unique<Communicator>(
                rank, 100 + 8 * static_cast<std::uint32_t>(i), script.members[i], script.fixed);
        }
    }
    operator Executor&() { return rank.executor; }  // for coroutines
    Communicator* communicator_of(const Call& call) {
        return communicators[call.communicator].get();
    }

    Rank& rank;
    const Script& script;
    Random dice;
    std::vector<std::unique_ptr<Communicator>> communicators;  // null: of others
    std::deque<Operation> operations;
    std::vector<std::unique_ptr<Pending>> pending, restarted;
    struct Persistent {
        Operation* operation;
        coll::Team team;
    };
    std::vector<Persistent> persistent;
};

Operation& make(Player& player, const Call& call) {
    Communicator& communicator = *player.communicator_of(call);
    Operation& operation = player.operations.emplace_back(player.rank, communicator, call.what);
    operation.fill(call.what.key);
    return operation;
}

std::unique_ptr<Pending> begin(Player& player, Operation& operation, const coll::Team& team) {
    Executor& executor = player.rank.executor;
    auto pending = std::make_unique<Pending>(executor, &operation);
    pending->scope.spawn(operation.run(executor, team));
    return pending;
}

// In an order of the rank's own; some of them, or all.
Task<Status> finish_some(Player& player, std::vector<std::unique_ptr<Pending>>& list, bool all) {
    std::ranges::shuffle(list, player.dice);
    FirstFailure failed;
    for (std::unique_ptr<Pending>& each : list) {
        if (!all && one_of(player.dice, 2)) continue;
        Status status = co_await finish(player.rank.executor, *each);
        failed.note(std::move(status));
        each.reset();
    }
    std::erase(list, nullptr);
    co_return failed.status();
}

Task<Status> restart(Player& player) {
    Status ended = co_await finish_some(player, player.restarted, true);
    std::ranges::shuffle(player.persistent, player.dice);
    for (const Player::Persistent& each : player.persistent) {
        Status passed = co_await pass_some_time(player.rank, player.dice);
        GANTRY_CO_TRY(passed);
        each.operation->fill(each.operation->what().key + 1);
        player.restarted.push_back(begin(player, *each.operation, each.team));
    }
    co_return ended;
}

Task<Status> call_one(Player& player, const Call& call) {
    Communicator* const communicator = player.communicator_of(call);
    if (communicator == nullptr) co_return success();
    Status passed = co_await pass_some_time(player.rank, player.dice);
    GANTRY_CO_TRY(passed);
    Operation& operation = make(player, call);
    if (call.form == Form::nonblocking) {
        player.pending.push_back(begin(player, operation, communicator->background()));
        co_return success();
    }
    Status done = co_await operation.run(player.rank.executor, communicator->blocking());
    GANTRY_CO_TRY(done);
    if (!operation.is_right())
        co_return failure(MPI_ERR_OTHER, "wrong numbers: {}", describe(call.what));
    co_return success();
}

Task<Status> play_all(Player& player) {
    FirstFailure failed;
    for (const Call& call : player.script.persistent)
        if (Communicator* const communicator = player.communicator_of(call))
            player.persistent.push_back({&make(player, call), communicator->background()});
    for (const std::vector<Call>& round : player.script.rounds) {
        const std::size_t when = below(player.dice, round.size());
        for (std::size_t i = 0; i < round.size(); ++i) {
            if (i == when) {
                Status restarted = co_await restart(player);
                failed.note(std::move(restarted));
            }
            Status called = co_await call_one(player, round[i]);
            failed.note(std::move(called));
        }
        Status waited = co_await finish_some(player, player.pending, false);
        failed.note(std::move(waited));
    }
    for (auto* list : {&player.restarted, &player.pending}) {
        Status waited = co_await finish_some(player, *list, true);
        failed.note(std::move(waited));
    }
    co_return failed.status();
}

Task<Status> play(Rank& rank, const Script& script) {
    Player player(rank, script);
    Status played = co_await play_all(player);
    co_return played;
}

// --- scripts -------------------------------------------------------------------------------------

// Around the cells of the node segment, eager messages, slots and pieces.
constexpr std::size_t kCounts[] = {0, 1, 6, 64, 511, 512, 513, 2000, 4500, 9000, 20'001};
constexpr plan::Algorithm kFixed[] = {plan::Algorithm::binomial,
                                      plan::Algorithm::scatter_allgather,
                                      plan::Algorithm::chain,
                                      plan::Algorithm::ring,
                                      plan::Algorithm::rabenseifner,
                                      plan::Algorithm::pairwise,
                                      plan::Algorithm::bruck,
                                      plan::Algorithm::spread,
                                      plan::Algorithm::linear,
                                      plan::Algorithm::fold,
                                      plan::Algorithm::ordered,
                                      plan::Algorithm::staged,
                                      plan::Algorithm::hierarchical,
                                      plan::Algorithm::cells,
                                      plan::Algorithm::direct,
                                      plan::Algorithm::direct_shares,
                                      plan::Algorithm::one_shot,
                                      plan::Algorithm::two_shots,
                                      plan::Algorithm::reads,
                                      plan::Algorithm::recursive_doubling,
                                      plan::Algorithm::recursive_halving};

enum class Memory : std::uint8_t { host, device, mixed };

std::vector<std::pair<Place, Place>> places(Random& dice, Memory memory, std::size_t ranks) {
    constexpr Place kPlaces[] = {Place::host, Place::pinned, Place::device};
    std::vector<std::pair<Place, Place>> all(ranks, {Place::host, Place::host});
    for (auto& [from, into] : all) {
        if (memory == Memory::device) from = into = Place::device;
        if (memory == Memory::mixed) from = kPlaces[below(dice, 3)], into = kPlaces[below(dice, 3)];
    }
    return all;
}

What what_of(Random& dice, Kind kind, std::size_t count, Memory memory, std::size_t ranks) {
    What what;
    what.kind = kind;
    what.count = count;
    what.root = static_cast<int>(below(dice, ranks));
    what.in_place = one_of(dice, 3);
    what.places = places(dice, memory, ranks);
    what.key = static_cast<std::int64_t>(below(dice, 100'000));
    return what;
}

Script random_script(std::uint64_t seed, bool fixed) {
    Random dice(seed);
    Script script;
    script.seed = seed;
    script.ranks = 2 + static_cast<int>(below(dice, 4));
    script.ranks_per_node = one_of(dice, 4) ? 2 : script.ranks;
    if (fixed) script.fixed = kFixed[seed % std::size(kFixed)];
    std::vector<int> everybody(static_cast<std::size_t>(script.ranks));
    std::iota(everybody.begin(), everybody.end(), 0);
    script.members.push_back(everybody);
    std::ranges::shuffle(everybody, dice);
    script.members.push_back(everybody);
    everybody.pop_back();
    script.members.push_back(everybody);
    const int gpus = static_cast<int>(1 + below(dice, 5));
    const auto memory = static_cast<Memory>(below(dice, 3));
    const auto random_call = [&](Form form) {
        Call call;
        call.communicator = below(dice, script.members.size());
        call.form = form;
        const auto kind = static_cast<Kind>(below(dice, kKinds));
        call.what = what_of(dice, kind, kCounts[below(dice, std::size(kCounts))], memory,
                            script.members[call.communicator].size());
        call.what.gpus = gpus;
        if (one_of(dice, 6)) call.what.ipc = device::IpcKind::pool;
        return call;
    };
    for (std::size_t i = below(dice, 3); i > 0; --i)
        script.persistent.push_back(random_call(Form::persistent));
    for (int round = 0; round < 3; ++round) {
        std::vector<Call>& calls = script.rounds.emplace_back();
        for (std::size_t i = 1 + below(dice, 4); i > 0; --i)
            calls.push_back(random_call(Form::nonblocking));
        if (one_of(dice, 2)) calls.push_back(random_call(Form::blocking));
    }
    return script;
}

Script pair_script(std::uint64_t seed, Kind one, Kind other, Memory memory) {
    Random dice(seed);
    Script script;
    script.seed = seed;
    script.members.push_back({0, 1, 2});
    for (int round = 0; round < 2; ++round) {
        std::vector<Call>& calls = script.rounds.emplace_back();
        for (const Kind kind : {one, other})
            calls.push_back({0, Form::nonblocking, what_of(dice, kind, 4500, memory, 3)});
    }
    return script;
}

// --- the world -----------------------------------------------------------------------------------

// Of reductions in place: what has been overwritten can go no other way, which is an error.
bool may_fail_where_a_read_is_refused(const Script& script) {
    const auto may = [](const Call& call) {
        return call.what.in_place &&
               (call.what.kind == Kind::allreduce || call.what.kind == Kind::reduce);
    };
    return std::ranges::any_of(script.persistent, may) ||
           std::ranges::any_of(script.rounds, [&](const std::vector<Call>& round) {
               return std::ranges::any_of(round, may);
           });
}

// Host memory of others can be read there, but not by one rank; or not every time; or each rank knows so after a
// while only, as in the first rounds of a job.
world::Options options_of(const Script& script) {
    Random dice(script.seed * 7 + 1);
    Options options{.machine = "h200",
                    .ranks = script.ranks,
                    .ranks_per_node = script.ranks_per_node,
                    .seed = script.seed,
                    .jitter = one_of(dice, 3) ? 0 : 20 * kMicrosecond,
                    .mechanisms = "all",
                    .network_order = transport::fake::Order::shuffled};
    options.change_machine = [](model::Machine& machine) {
        machine.shared_memory.read_latency = 500;
        machine.shared_memory.read_rate = model::Rate(1e10);
    };
    const int unlucky = static_cast<int>(below(dice, static_cast<std::size_t>(script.ranks)));
    const std::size_t good = below(dice, 8);
    switch (below(dice, 5)) {
        case 0: options.reads = [unlucky](int rank) { return rank != unlucky; }; break;
        case 1:
            if (may_fail_where_a_read_is_refused(script)) break;
            options.refuse_read = [=, reads = std::size_t{0}](int rank) mutable {
                return rank == unlucky && reads++ == good;
            };
            break;
        case 2:
        case 3:
            options.reads = [=, asked = std::vector<std::size_t>(8)](int rank) mutable {
                return asked[static_cast<std::size_t>(rank)]++ >= good;
            };
            break;
        default: break;
    }
    return options;
}

void expect_good(const Script& script) {
    World world(options_of(script));
    const Ending ending = world.run([&](Rank& rank) { return play(rank, script); });
    ASSERT_TRUE(ending.good()) << ending << "\n" << describe(script);
    ASSERT_TRUE(world.settle()) << "something is left: seed " << script.seed << "\n"
                                << describe(script);
}

TEST(OverlappingCollectives, EndRightInEveryPairOfTheFirstRounds) {
    const std::uint64_t each = seeds(1, 20);
    std::uint64_t number = 0;
    for (int one = 0; one < kKinds; ++one)
        for (int other = 0; other < kKinds; ++other, ++number)
            for (std::uint64_t seed = 0; seed < each; ++seed) {
                // Every kind of memory within three pairs, and with many seeds for every pair.
                const auto memory = static_cast<Memory>((number + seed) % 3);
                expect_good(pair_script(number * 100 + seed + 1, static_cast<Kind>(one),
                                        static_cast<Kind>(other), memory));
                if (HasFatalFailure()) return;
            }
}

TEST(OverlappingCollectives, EndRightInRandomPrograms) {
    for (std::uint64_t seed = 1; seed <= seeds(repetitions(60), 3000); ++seed) {
        expect_good(random_script(seed, false));
        if (HasFatalFailure()) return;
    }
}

TEST(OverlappingCollectives, EndRightInRandomProgramsOfEachAlgorithm) {
    for (std::uint64_t seed = 1; seed <= seeds(repetitions(44), 3000); ++seed) {
        expect_good(random_script(10'000 + seed, true));
        if (HasFatalFailure()) return;
    }
}

}  // namespace
}  // namespace gantry::world
