// SPDX-License-Identifier: BSD-3-Clause
//
// Random programs of 2 to 8 threads a rank against a sequential model. A thread is a task; between
// two of its calls it sleeps a random time, so that every seed is another order of the threads' calls.
// Half of the threads send, and cancel some of it; half receive: from anybody or somebody, any tag or
// one, by probes that take the message or leave it, and cancel what does not come.
//
// The model is a list for each rank of what was asked and one for each pair of what was sent, in the
// order of the calls. Of a message and a receive that fit: either the message went to an earlier
// receive, or the receive took an earlier message of that sender or one of another sender.
#include "world/harness/programs.hpp"

#include "base/scope.hpp"

#include <fmt/format.h>

#include <random>

namespace gantry::world {
namespace {

constexpr int kSends = 10;  // of a sending thread
constexpr int kTags = 3;
constexpr Bytes kMost = 200000;

using Random = std::mt19937_64;

int between(Random& random, int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
}

Bytes length(Random& random) {
    const int kind = between(random, 0, 9);
    if (kind < 5) return static_cast<Bytes>(between(random, 8, 200));
    return static_cast<Bytes>(kind < 8 ? between(random, 200, 20000)
                                       : between(random, 20000, static_cast<int>(kMost)));
}

constexpr std::size_t kNobody = ~std::size_t{0};

struct Sent {
    std::uint64_t key;
    int tag;
    Bytes bytes;
    bool cancelled = false;
    std::size_t receive = kNobody;  // its index in the receiver's list
};

struct Asked {
    int source, tag;
    bool cancelled = false;
    int from = -1;
    std::size_t message = kNobody;  // its index among those of `from`
};

bool fit(const Asked& asked, int source, const Sent& sent) {
    return (asked.source == MPI_ANY_SOURCE || asked.source == source) &&
           (asked.tag == MPI_ANY_TAG || asked.tag == sent.tag);
}

class Model {
  public:
    Model(int ranks, int of_a_rank)
        : threads(of_a_rank),
          ranks_(ranks),
          senders_(ranks * (of_a_rank / 2)),
          sent_(static_cast<std::size_t>(ranks * ranks)),
          asked_(static_cast<std::size_t>(ranks)),
          open_(static_cast<std::size_t>(ranks), 0) {}

    const int threads;

    std::vector<Sent>& sent(int from, int to) {
        return sent_[static_cast<std::size_t>(from * ranks_ + to)];
    }
    std::vector<Asked>& asked(int rank) { return asked_[static_cast<std::size_t>(rank)]; }

    std::size_t send(int from, int to, int tag, Bytes bytes) {
        sent(from, to).push_back({++keys_, tag, bytes});
        ++open(to);
        return sent(from, to).size() - 1;
    }
    void cancel_send(int from, int to, std::size_t message) {
        sent(from, to)[message].cancelled = true;
        --open(to);
    }
    std::size_t ask(int rank, int source, int tag) {
        asked(rank).push_back({source, tag});
        return asked(rank).size() - 1;
    }
    // Which message lies in that buffer? False: none that was sent and has not come yet.
    bool came(int rank, std::size_t receive, const p2p::Outcome& outcome, Bytebuffer& buffer) {
        std::vector<Sent>& messages = sent(outcome.source, rank);
        for (std::size_t i = 0; i < messages.size(); ++i) {
            Sent& message = messages[i];
            if (message.receive != kNobody || message.tag != outcome.tag ||
                message.bytes != outcome.bytes || !buffer.holds(message.key, message.bytes))
                continue;
            message.receive = receive;
            asked(rank)[receive].from = outcome.source;
            asked(rank)[receive].message = i;
            --open(rank);
            return true;
        }
        return false;
    }
    void leave() { --senders_; }
    bool all_came(int rank) { return senders_ == 0 && open(rank) == 0; }

    // What contradicts the order of calls; empty: nothing.
    std::string judge() {
        for (int to = 0; to < ranks_; ++to) {
            for (const Asked& each : asked(to))
                if (!each.cancelled && each.message == kNobody) return "a receive without message";
            for (int from = 0; from < ranks_; ++from) {
                const std::string wrong = judge(from, to);
                if (!wrong.empty()) return wrong;
            }
        }
        return {};
    }

  private:
    int& open(int rank) { return open_[static_cast<std::size_t>(rank)]; }

    std::string judge(int from, int to) {
        const std::vector<Sent>& messages = sent(from, to);
        for (std::size_t m = 0; m < messages.size(); ++m) {
            if (messages[m].cancelled != (messages[m].receive == kNobody))
                return fmt::format("message {} of {} to {} is lost, or cancelled and received", m,
                                   from, to);
            if (messages[m].cancelled) continue;
            for (std::size_t r = 0; r < asked(to).size(); ++r) {
                const Asked& asks = asked(to)[r];
                if (asks.cancelled || !fit(asks, from, messages[m])) continue;
                if (r < messages[m].receive && asks.from == from && m < asks.message)
                    return fmt::format(
                        "of {} to {}: message {} was taken by receive {}, and "
                        "message {} by receive {}",
                        from, to, m, messages[m].receive, asks.message, r);
            }
            if (!fit(asked(to)[messages[m].receive], from, messages[m]))
                return fmt::format("message {} of {} to {} was not asked for", m, from, to);
        }
        return {};
    }

    int ranks_, senders_;
    std::uint64_t keys_ = 0;
    std::vector<std::vector<Sent>> sent_;  // by sender and receiver
    std::vector<std::vector<Asked>> asked_;
    std::vector<int> open_;  // messages to each rank that are neither received nor cancelled
};

// --- senders ------------------------------------------------------------------------------------

Task<Status> one_send(Rank& rank, Model& model, std::uint64_t seed) {
    Random random(seed);
    const int to = between(random, 0, rank.all.size() - 1), tag = between(random, 0, kTags - 1);
    const auto mode =
        between(random, 0, 3) == 0 ? p2p::SendMode::synchronous : p2p::SendMode::standard;
    const bool waits = between(random, 0, 3) == 0;
    const bool cancels = !waits && between(random, 0, 4) == 0;
    Bytebuffer out(rank, between(random, 0, 3) == 0 ? Place::device : Place::host, length(random));
    const std::size_t message = model.send(rank.number, to, tag, out.bytes());
    out.fill(model.sent(rank.number, to)[message].key);
    Result<p2p::Request*> sending(nullptr);
    if (waits) {
        sending = rank.messenger.send_to_wait(rank.all, out.whole(), to, tag, mode);
        if (sending.ok() && sending.value() == nullptr) co_return success();
    } else {
        sending = rank.messenger.isend(rank.all, out.whole(), to, tag, mode);
    }
    if (cancels && sending.ok()) {
        Status slept = co_await rank.sleep(rank.executor, between(random, 0, 40) * kMicrosecond);
        GANTRY_CO_TRY(slept);
        rank.messenger.cancel(*sending.value());
    }
    Received ended = co_await finish(rank.executor, rank, std::move(sending));
    if (ended.outcome.cancelled) model.cancel_send(rank.number, to, message);
    co_return ended.status;
}

// Several at once, for a send may need that another one's receiver goes on.
Task<Status> sender(Rank& rank, Model& model, std::uint64_t seed) {
    Random random(seed);
    Scope scope(rank.executor);
    for (int number = 0; number < kSends; ++number) {
        scope.spawn(one_send(rank, model, random()));
        Status slept = co_await rank.sleep(rank.executor, between(random, 0, 30) * kMicrosecond);
        if (!slept.ok()) scope.cancel(std::move(slept));
        if (scope.running() < between(random, 1, 5)) continue;
        Status joined = co_await scope.join(rank.executor);
        if (!joined.ok()) break;
    }
    Status joined = co_await scope.join(rank.executor);
    model.leave();
    co_return joined;
}

// --- receivers ----------------------------------------------------------------------------------

Task<Status> take_by_probe(Rank& rank, Model& model, int source, int tag, Bytebuffer& in) {
    p2p::Matched found = rank.messenger.take(rank.all, source, tag);
    if (found.message == nullptr) co_return success();
    const std::size_t receive = model.ask(rank.number, source, tag);
    Received ended = co_await finish(rank.executor, rank,
                                     rank.messenger.ireceive_matched(rank.all, found, in.whole()));
    GANTRY_CO_TRY(ended.status);
    WORLD_CHECK(ended.outcome.bytes == found.outcome.bytes);
    WORLD_CHECK(model.came(rank.number, receive, ended.outcome, in));
    co_return success();
}

// Posted, and taken back when it has not been matched for a while.
Task<Status> one_receive(Rank& rank, Model& model, int source, int tag, std::uint64_t seed) {
    Random random(seed);
    Bytebuffer in(rank, between(random, 0, 3) == 0 ? Place::device : Place::host, kMost);
    const std::size_t receive = model.ask(rank.number, source, tag);
    Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, in.whole(), source, tag);
    if (posted.ok()) {
        for (int left = between(random, 1, 30); left > 0 && !posted.value()->done; --left) {
            Status slept = co_await rank.sleep(rank.executor, 10 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        if (!posted.value()->done) rank.messenger.cancel(*posted.value());
    }
    Received ended = co_await finish(rank.executor, rank, std::move(posted));
    GANTRY_CO_TRY(ended.status);
    model.asked(rank.number)[receive].cancelled = ended.outcome.cancelled;
    WORLD_CHECK(ended.outcome.cancelled || model.came(rank.number, receive, ended.outcome, in));
    co_return success();
}

Task<Status> receiver(Rank& rank, Model& model, std::uint64_t seed) {
    Random random(seed);
    Bytebuffer in(rank, Place::host, kMost);
    Scope scope(rank.executor);
    while (!model.all_came(rank.number) && !scope.cancelled()) {
        const int tag = between(random, 0, 2) == 0 ? MPI_ANY_TAG : between(random, 0, kTags - 1);
        const int source =
            between(random, 0, 1) == 0 ? MPI_ANY_SOURCE : between(random, 0, rank.all.size() - 1);
        const int kind = between(random, 0, 5);
        if (kind == 0) {
            const p2p::Matched seen = rank.messenger.probe(rank.all, source, tag);
            if (seen.message != nullptr &&
                ((tag != MPI_ANY_TAG && seen.outcome.tag != tag) ||
                 (source != MPI_ANY_SOURCE && seen.outcome.source != source)))
                scope.cancel(failure(MPI_ERR_OTHER, "a probe found what was not asked for"));
        } else if (kind <= 2) {
            in.clear();
            Status taken = co_await take_by_probe(rank, model, source, tag, in);
            if (!taken.ok()) scope.cancel(std::move(taken));
        } else {
            scope.spawn(one_receive(rank, model, source, tag, random()));
        }
        Status slept = co_await rank.sleep(rank.executor, between(random, 0, 20) * kMicrosecond);
        if (!slept.ok()) scope.cancel(std::move(slept));
        if (scope.running() < between(random, 1, 4)) continue;
        Status joined = co_await scope.join(rank.executor);
        if (!joined.ok()) break;
    }
    Status joined = co_await scope.join(rank.executor);
    co_return joined;
}

Task<Status> threads(Rank& rank, Model& model, std::uint64_t seed) {
    Random random(seed * 100 + static_cast<std::uint64_t>(rank.number));
    Scope scope(rank.executor);
    for (int pair = 0; pair < model.threads / 2; ++pair) {
        scope.spawn(sender(rank, model, random()));
        scope.spawn(receiver(rank, model, random()));
    }
    Status joined = co_await scope.join(rank.executor);
    co_return joined;
}

void expect_order(int ranks, int ranks_per_node, std::uint64_t first_seed, std::uint64_t seeds) {
    for (std::uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
        const int of_a_rank = 2 + 2 * static_cast<int>(seed % 4);
        SCOPED_TRACE(fmt::format("seed {}, {} threads a rank", seed, of_a_rank));
        World world({.ranks = ranks,
                     .ranks_per_node = ranks_per_node,
                     .seed = seed,
                     .jitter = 30 * kMicrosecond,
                     .network_order = transport::fake::Order::shuffled,
                     .duplicate_envelopes = true,
                     .exposes_from = seed % 2 == 0 ? 0 : 32 * kKiB});
        Model model(ranks, of_a_rank);
        const Ending ending = world.run([&](Rank& rank) { return threads(rank, model, seed); });
        ASSERT_TRUE(ending.good()) << ending;
        ASSERT_EQ(model.judge(), "");
        ASSERT_TRUE(world.settle()) << "something was left over";
    }
}

TEST(RandomThreads, MessagesAreMatchedInTheOrderOfTheCallsBetweenNodes) {
    expect_order(2, 1, 1, 8);
}
TEST(RandomThreads, MessagesAreMatchedInTheOrderOfTheCallsOnOneNode) {
    expect_order(2, 2, 100, 12);
}
TEST(RandomThreads, MessagesAreMatchedInTheOrderOfTheCallsOfThreeRanks) {
    expect_order(3, 2, 200, 4);
}

}  // namespace
}  // namespace gantry::world
