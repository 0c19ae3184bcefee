// SPDX-License-Identifier: BSD-3-Clause
//
// Agreements and revocations while ranks die: in each step of each rank, and several in one run. All that
// live decide alike, with what each of them has brought, and every run ends.
#include "faults/agreement.hpp"
#include "faults/revocations.hpp"
#include "all.hpp"
#include "world/harness/programs.hpp"

#include <map>
#include <memory>
#include <random>

namespace gantry::world {
namespace {

constexpr std::uint32_t kContext = 1;

// A world of which ranks die as they are about to send their nth message of this kind.
class Mortals {
  public:
    struct Death {
        int rank, step;
    };
    Mortals(Options options, std::vector<Death> deaths) : deaths_(std::move(deaths)) {
        options.on_send = options.on_send_in_node = [this](int rank, transport::MessageKind kind) {
            return may_send(rank, kind);
        };
        world_.emplace(std::move(options));
        for (int rank = 0; rank < world_->ranks(); ++rank) {
            Rank& its = world_->rank(rank);
            agreements.push_back(std::make_unique<faults::Agreements>(its.transfer, its.messenger));
            revocations.push_back(std::make_unique<faults::Revocations>(
                its.transfer, its.messenger, [&its](std::uint32_t) { return its.all.peers; }));
        }
    }
    World& world() { return *world_; }
    bool died(int rank) const { return dead_.contains(rank); }
    int sent(int rank) { return sent_[rank]; }
    std::vector<std::unique_ptr<faults::Agreements>> agreements;
    std::vector<std::unique_ptr<faults::Revocations>> revocations;

  private:
    Status may_send(int rank, transport::MessageKind kind) {
        if (kind != faults::wire::kAgree && kind != faults::wire::kRevoke) return success();
        if (died(rank)) return failure(MPI_ERR_OTHER, "rank {} is dead", rank);
        const int step = sent_[rank]++;
        for (const Death& death : deaths_) {
            if (death.rank != rank || death.step != step) continue;
            dead_.insert(rank);
            // What it has sent before is under way.
            world_->kill_at(world_->timeline().now() + 20 * kMicrosecond, rank);
            return failure(MPI_ERR_OTHER, "rank {} dies", rank);
        }
        return success();
    }
    const std::vector<Death> deaths_;
    std::set<int> dead_;
    std::map<int, int> sent_;
    std::optional<World> world_;
};

struct Outcomes {
    std::vector<std::vector<faults::Decision>> of;  // by rank, by agreement
};

// Some agreements behind each other. Each rank clears its bit of the flags and brings its number.
Task<Status> agree_often(Rank& rank, faults::Agreements& agreements, int times,
                         Outcomes& outcomes) {
    for (int i = 0; i < times; ++i) {
        faults::Agreements::Call call;
        call.context = kContext;
        call.sequence = static_cast<std::uint32_t>(i);
        call.peers = rank.all.peers;
        call.rank = rank.number;
        call.mine.flags = ~(1u << (rank.number % 32));
        call.mine.value = static_cast<std::uint64_t>(rank.number);
        call.mine.failed = call.mine.acknowledged = faults::MemberSet(rank.all.size());
        for (const int lost : rank.messenger.losses())
            call.mine.failed.add(lost);
        faults::Decision decided;
        Status agreed = co_await agreements.agree(rank.executor, std::move(call), &decided);
        GANTRY_CO_TRY(agreed);
        outcomes.of[static_cast<std::size_t>(rank.number)].push_back(std::move(decided));
    }
    co_return success();
}

Options options_of(int ranks, std::uint64_t seed) {
    return {.machine = "c2050-qdr",
            .ranks = ranks,
            .ranks_per_node = seed % 3 == 0 ? 1 : 4,
            .seed = seed,
            .jitter = static_cast<Nanoseconds>(seed % 4) * 20 * kMicrosecond,
            .explain = false,
            .change_config = [](config::Config& config) {
                config.device_pool = config.host_pool = 256 * kKiB;
            }};
}

std::string story(int ranks, std::uint64_t seed, const std::vector<Mortals::Death>& deaths) {
    std::string text = fmt::format("{} ranks, seed {}", ranks, seed);
    for (const auto& [rank, step] : deaths)
        text += fmt::format(", rank {} dies at its message {}", rank, step);
    return text;
}

constexpr int kTimes = 3;

void agree_with(int ranks, std::uint64_t seed, const std::vector<Mortals::Death>& deaths) {
    SCOPED_TRACE(story(ranks, seed, deaths));
    Mortals mortals(options_of(ranks, seed), deaths);
    Outcomes outcomes;
    outcomes.of.resize(static_cast<std::size_t>(ranks));
    const Ending ending = mortals.world().run([&](Rank& rank) {
        return agree_often(rank, *mortals.agreements[static_cast<std::size_t>(rank.number)], kTimes,
                           outcomes);
    });
    ASSERT_TRUE(ending.good()) << ending;
    std::uint32_t of_survivors = ~0u;
    for (int rank = 0; rank < ranks; ++rank)
        if (!mortals.died(rank)) of_survivors &= ~(1u << (rank % 32));
    // Whoever decided before it died decided like the others.
    for (std::size_t i = 0; i < kTimes; ++i) {
        const faults::Decision* first = nullptr;
        for (int rank = 0; rank < ranks; ++rank) {
            const auto& of = outcomes.of[static_cast<std::size_t>(rank)];
            if (!mortals.died(rank)) {
                ASSERT_EQ(of.size(), kTimes);
            }
            if (of.size() <= i) continue;
            if (first == nullptr) first = &of[i];
            EXPECT_EQ(of[i].flags, first->flags);
            EXPECT_EQ(of[i].value, first->value);
            EXPECT_EQ(of[i].failed, first->failed);
            EXPECT_EQ(of[i].flags & ~of_survivors, 0u);
        }
        for (int rank = 0; rank < ranks && first != nullptr; ++rank)
            EXPECT_FALSE(!mortals.died(rank) && first->failed.has(rank));
    }
}

// A coordinator sends proposals, then decisions; a member two messages in each agreement.
int steps(int ranks) {
    return 2 * ranks * kTimes;
}

TEST(Agreements, OneRankDiesAtAnyStep) {
    for (const int ranks : {1, 2, 3, 5})
        for (int rank = 0; rank < ranks; ++rank)
            for (int step = 0; step < steps(ranks); ++step)
                agree_with(ranks, static_cast<std::uint64_t>(step), {{rank, step}});
}

TEST(Agreements, TwoCoordinatorsDieAtAnySteps) {
    for (int first = 0; first < steps(4); first += all_is_tested() ? 1 : 2)
        for (int second = 0; second < steps(4); ++second)
            agree_with(4, static_cast<std::uint64_t>(first), {{0, first}, {1, second}});
}

// Half of the ranks at most, each at any of its steps.
void many_die(int ranks, std::uint64_t seed) {
    std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(ranks));
    const auto below = [&random](int end) {
        return static_cast<int>(random() % static_cast<std::uint64_t>(end));
    };
    std::vector<Mortals::Death> deaths;
    for (int count = below(ranks / 2 + 1); count > 0; --count)
        // The first ranks are the next coordinators.
        deaths.push_back({below(2) == 0 ? below(ranks) : below(ranks / 2 + 1) / 2,
                          below(below(2) == 0 ? 8 : steps(ranks))});
    agree_with(ranks, seed, deaths);
}

TEST(Agreements, UpToHalfOfTheRanksDie) {
    const std::uint64_t runs = seeds(20, 200);
    for (std::uint64_t seed = 1; seed <= runs; ++seed)
        for (const int ranks : {2, 4, 7, 16, 64})
            many_die(ranks, seed);
}

TEST(Agreements, CostThreeMessagesToAndFromEachMember) {
    Mortals mortals(options_of(8, 1), {});
    Outcomes outcomes;
    outcomes.of.resize(8);
    const Ending ending = mortals.world().run([&](Rank& rank) {
        return agree_often(rank, *mortals.agreements[static_cast<std::size_t>(rank.number)], 1,
                           outcomes);
    });
    ASSERT_TRUE(ending.good()) << ending;
    // To members of other nodes the coordinator says that it waits for them, too.
    EXPECT_EQ(mortals.sent(0), 7 + 7 + 4);
    for (int rank = 1; rank < 8; ++rank)
        EXPECT_EQ(mortals.sent(rank), 2);
}

TEST(Agreements, KeepOneDecisionOfEachGroup) {
    Mortals mortals(options_of(4, 1), {});
    Outcomes outcomes;
    outcomes.of.resize(4);
    const Ending ending = mortals.world().run([&](Rank& rank) {
        return agree_often(rank, *mortals.agreements[static_cast<std::size_t>(rank.number)], 50,
                           outcomes);
    });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(mortals.world().settle());
    for (const auto& each : mortals.agreements)
        EXPECT_EQ(each->kept(), 1u);
}

// --- revocations ---------------------------------------------------------------------------------

// Rank 1 revokes while all others wait for a message that never comes, and one that it sends is not taken.
Task<Status> wait_until_revoked(Rank& rank, faults::Revocations& revocations) {
    Bytebuffer buffer(rank, Place::host, kMiB);
    if (rank.number == 1) {
        Status slept = co_await rank.sleep(rank.executor, 100 * kMicrosecond);
        GANTRY_CO_TRY(slept);
        revocations.revoke(kContext);
        Status sent = co_await send(rank, buffer.whole(), 0, 7);
        WORLD_CHECK(sent.error_class() == MPIX_ERR_REVOKED);
        co_return success();
    }
    const int next = (rank.number + 1) % rank.all.size();
    Result<p2p::Request*> sending =
        rank.messenger.isend(rank.all, buffer.whole(), next, 9, p2p::SendMode::synchronous);
    const int from = rank.number % 2 == 0 ? 1 : MPI_ANY_SOURCE;
    Received received = co_await receive(rank, buffer.whole(), from, 8);
    const int how = received.status.error_class();
    // Where rank 1 dies before it has told anybody, that is what ends the receive.
    const bool alone = !rank.messenger.is_revoked(kContext);
    WORLD_CHECK(alone || how == MPIX_ERR_REVOKED || how == MPI_ERR_PROC_ABORTED);
    Received sent = co_await finish(rank.executor, rank, sending);
    WORLD_CHECK(alone || !sent.status.ok());
    co_return success();
}

TEST(Revocations, ReachAllThatLiveOrNobodyIfTheirMakerDies) {
    for (const int ranks : {3, 6, 16})
        for (int step = 0; step < ranks; ++step) {
            SCOPED_TRACE(story(ranks, 1, {{1, step}}));
            Mortals mortals(options_of(ranks, static_cast<std::uint64_t>(step)), {{1, step}});
            const Ending ending = mortals.world().run([&](Rank& rank) {
                return wait_until_revoked(
                    rank, *mortals.revocations[static_cast<std::size_t>(rank.number)]);
            });
            mortals.world().settle();
            int told = 0, alive = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                if (mortals.died(rank)) continue;
                ++alive;
                told += mortals.world().rank(rank).messenger.is_revoked(kContext) ? 1 : 0;
            }
            // With nobody told, those that wait for one of the others wait for ever.
            EXPECT_EQ(told, step == 0 ? 0 : alive);
            EXPECT_TRUE(told == 0 || ending.good()) << ending;
        }
}

}  // namespace
}  // namespace gantry::world
