// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that carry signatures (p2p/signatures.hpp), by every way that a message may go: a receive
// that its message does not match says so, has its data all the same, and nothing is left over.
#include "p2p/signatures.hpp"

#include "p2p/wire.hpp"
#include "world/harness/ready_to_receive.hpp"

#include <fmt/format.h>

#include <map>
#include <random>

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

// Buffers of bytes with a type, by their addresses; of all ranks.
class Typed : public p2p::Signatures {
  public:
    void set(const p2p::Buffer& buffer, std::uint32_t type) { types_[buffer.address] = type; }
    std::optional<layout::Signature> of(const p2p::Buffer& buffer) const override {
        const auto type = types_.find(buffer.address);
        if (type == types_.end() || buffer.bytes() == 0) return std::nullopt;
        return layout::repeated(layout::signature_of_item(type->second, 0), buffer.bytes());
    }
    Status compare(const layout::Signature& sent, Bytes bytes, int source,
                   const p2p::Buffer& receive) const override {
        if (bytes > receive.bytes()) return success();
        p2p::Buffer beginning = receive;
        beginning.count = bytes;
        if (of(beginning) == sent) return success();
        return failure(MPI_ERR_TYPE, "another type from rank {}", source);
    }

  private:
    std::map<const void*, std::uint32_t> types_;
};

constexpr Bytes kSizes[] = {
    1,         8,       1000, 16 * kKiB,   17 * kKiB + 1, 32 * kKiB, 32 * kKiB + 1,
    64 * kKiB, 100'000, kMiB, 3 * kMiB + 5};
constexpr int kRounds = 12, kInRound = 5;

struct Message {
    Bytes bytes = 0, room = 0;
    Place from{}, into{};
    bool alike = true;
    p2p::SendMode mode{};
    int source = 0, tag = 0;  // of the receive
    int expected() const {
        if (bytes > room) return MPI_ERR_TRUNCATE;
        return alike ? MPI_SUCCESS : MPI_ERR_TYPE;
    }
};

// The same on both ranks.
std::vector<Message> messages_of(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto up_to = [&random](int most) {
        return std::uniform_int_distribution<int>(0, most)(random);
    };
    std::vector<Message> all;
    for (int i = 0; i < kRounds * kInRound; ++i) {
        Message message;
        message.bytes = kSizes[up_to(static_cast<int>(std::size(kSizes)) - 1)];
        const Bytes rooms[] = {message.bytes, message.bytes + 40, message.bytes / 2};
        message.room = rooms[up_to(5) % 3];
        message.from = static_cast<Place>(up_to(2));
        message.into = static_cast<Place>(up_to(2));
        message.alike = up_to(1) == 0;
        message.mode = up_to(3) == 0 ? p2p::SendMode::synchronous : p2p::SendMode::standard;
        message.source = up_to(2) == 0 ? MPI_ANY_SOURCE : 0;
        message.tag = up_to(2) == 0 ? MPI_ANY_TAG : 3;
        all.push_back(message);
    }
    return all;
}

Task<Status> mixed(Rank& rank, Typed& types, bool checked) {
    if (checked) rank.messenger.carry_signatures(types);
    const std::vector<Message> all = messages_of(rank.world.options().seed);
    const bool sends = rank.number == 0;
    std::vector<std::unique_ptr<Bytebuffer>> buffers;
    for (std::size_t i = 0; i < all.size(); ++i) {
        buffers.push_back(std::make_unique<Bytebuffer>(
            rank, sends ? all[i].from : all[i].into, sends ? all[i].bytes : all[i].room,
            rank.number % rank.world.machine().gpus_per_node));
        if (sends) buffers.back()->fill(i);
        types.set(buffers.back()->whole(), sends || all[i].alike ? 1 : 2);
    }
    for (std::size_t round = 0; round < kRounds; ++round) {
        std::vector<Result<p2p::Request*>> requests;
        const bool late = round % 3 == 0;  // the messages are there before their receives
        if (late && !sends) {
            Status slept = co_await rank.sleep(rank.executor, 300 * kMicrosecond);
            GANTRY_CO_TRY(slept);
        }
        for (std::size_t i = round * kInRound; i < (round + 1) * kInRound; ++i) {
            const p2p::Buffer buffer = buffers[i]->whole();
            requests.push_back(
                sends ? rank.messenger.isend(rank.all, buffer, 1, 3, all[i].mode)
                      : rank.messenger.ireceive(rank.all, buffer, all[i].source, all[i].tag));
        }
        for (std::size_t i = round * kInRound; i < (round + 1) * kInRound; ++i) {
            Received ended =
                co_await finish(rank.executor, rank, std::move(requests[i - round * kInRound]));
            const int expected = sends || (!checked && all[i].bytes <= all[i].room)
                                     ? MPI_SUCCESS
                                     : all[i].expected();
            if (ended.status.error_class() != expected)
                co_return failure(MPI_ERR_OTHER, "message {} ends with {} {}, not {}", i,
                                  ended.status.error_class(), ended.status.text(), expected);
            WORLD_CHECK(sends || buffers[i]->holds(i, std::min(all[i].bytes, all[i].room)));
        }
        Status met = co_await meet(rank, 1000);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

std::vector<Options> everywhere(std::uint64_t seed) {
    Options node{
        .ranks_per_node = 2, .seed = seed, .jitter = 20 * kMicrosecond, .mechanisms = "all"};
    Options reading = node;
    reading.change_machine = [](model::Machine& machine) {
        machine.shared_memory.read_latency = 500;
        machine.shared_memory.read_rate = model::Rate(40e9);
    };
    Options plain = node;
    plain.mechanisms = "none";
    plain.machine = "h200";
    Options network{.seed = seed,
                    .jitter = 30 * kMicrosecond,
                    .network_order = transport::fake::Order::shuffled,
                    .duplicate_envelopes = true,
                    .exposes_from = seed % 2 == 0 ? 0 : 32 * kKiB};
    Options peers = two_gpus(seed);
    return {node, reading, plain, network, peers};
}

std::uint64_t envelopes(World& world, wire::Kind kind) {
    return world.shared_memory().count(kind).messages + world.network().count(kind).messages;
}

Bytes eager_bytes(World& world) {
    return world.shared_memory().count(wire::kEager).payload_bytes +
           world.network().count(wire::kEager).payload_bytes;
}

// Beside eager messages.
constexpr wire::Kind kWithData[] = {wire::kEagerSynchronous, wire::kRts, wire::kRtsFromTemplate,
                                    wire::kRtsOtherBuffer};

TEST(SignedMessages, ThatDoNotMatchTheirReceivesSayWhatIsWrong) {
    std::map<wire::Kind, std::uint64_t> without, plain;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        for (const Options& options : everywhere(seed)) {
            for (const bool checked : {false, true}) {
                Typed types;
                World world(options);
                const Ending ending = world.run(
                    [&types, checked](Rank& rank) { return mixed(rank, types, checked); });
                ASSERT_TRUE(ending.good()) << ending;
                ASSERT_TRUE(world.settle()) << "something was left over, seed " << seed;
                EXPECT_EQ(envelopes(world, wire::kSigned) > 0, checked);
                for (const wire::Kind kind : kWithData)
                    (checked ? plain : without)[kind] += envelopes(world, kind);
                // The others of that kind are empty: nothing can be said of them.
                plain[wire::kEager] += checked ? eager_bytes(world) : 0;
            }
        }
    }
    for (const wire::Kind kind : kWithData)
        EXPECT_GT(without[kind], 0u) << "no message went so: " << kind;
    for (const auto& [kind, number] : plain)
        EXPECT_EQ(number, 0u) << "some went without a signature: " << kind;
}

// Straight into the buffer of a receive that waits, before the two have met.
Task<Status> put(Rank& rank, Typed& types, std::uint64_t& put_at_last) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    types.set(buffer.whole(), 1);
    rank.messenger.carry_signatures(types);
    Status ready = co_await learn_to_put(rank, buffer);
    GANTRY_CO_TRY(ready);
    const std::uint64_t before = puts(rank);
    for (const std::uint32_t type : {2u, 1u}) {
        if (rank.number == 1) types.set(buffer.whole(), type);
        if (rank.number == 0) {
            buffer.fill(type);
            Status slept = co_await rank.sleep(rank.executor, 50 * kMicrosecond);
            GANTRY_CO_TRY(slept);
            Status sent = co_await send_and_wait(rank, buffer.whole(), 1, 7);
            GANTRY_CO_TRY(sent);
        } else {
            buffer.clear();
            Received got = co_await receive_and_wait(rank, buffer.whole(), 0, 7);
            WORLD_CHECK(got.status.error_class() == (type == 1 ? MPI_SUCCESS : MPI_ERR_TYPE));
            WORLD_CHECK(buffer.holds(type, buffer.bytes()));
        }
        Status met = co_await meet(rank, 900);
        GANTRY_CO_TRY(met);
    }
    if (rank.number == 0) put_at_last = puts(rank) - before;
    co_return success();
}

TEST(SignedMessages, ArePutAfterAnRtrAsEver) {
    Typed types;
    std::uint64_t put_at_last = 0;
    World world(two_gpus());
    const Ending ending = world.run([&](Rank& rank) { return put(rank, types, put_at_last); });
    ASSERT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(put_at_last, 2u);
}

// A matched probe takes the message with its signature; a cancelled send takes both back.
Task<Status> probed_and_cancelled(Rank& rank, Typed& types) {
    rank.messenger.carry_signatures(types);
    for (const Bytes bytes : {Bytes{8}, Bytes{200 * kKiB}}) {
        Bytebuffer buffer(rank, Place::host, bytes);
        types.set(buffer.whole(), rank.number == 0 ? 1 : 2);
        if (rank.number == 0) {
            buffer.fill(bytes);
            Status sent = co_await send(rank, buffer.whole(), 1, 7);
            GANTRY_CO_TRY(sent);
            Result<p2p::Request*> unwanted =
                rank.messenger.isend(rank.all, buffer.whole(), 1, 8, p2p::SendMode::synchronous);
            GANTRY_CO_TRY(unwanted.status());
            rank.messenger.cancel(**unwanted);
            Received ended = co_await finish(rank.executor, rank, std::move(unwanted));
            WORLD_CHECK(ended.status.ok() && ended.outcome.cancelled);
        } else {
            p2p::Matched found;
            while ((found = rank.messenger.take(rank.all, 0, 7)).message == nullptr)
                co_await rank.turn();
            Received got =
                co_await finish(rank.executor, rank,
                                rank.messenger.ireceive_matched(rank.all, found, buffer.whole()));
            WORLD_CHECK(got.status.error_class() == MPI_ERR_TYPE);
            WORLD_CHECK(buffer.holds(bytes, bytes));
        }
        Status met = co_await meet(rank, 900);
        GANTRY_CO_TRY(met);
    }
    co_return success();
}

TEST(SignedMessages, KeepTheirSignatureUntilAReceiveHasThem) {
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        for (const Options& options : everywhere(seed)) {
            Typed types;
            World world(options);
            const Ending ending =
                world.run([&types](Rank& rank) { return probed_and_cancelled(rank, types); });
            ASSERT_TRUE(ending.good()) << ending;
            ASSERT_TRUE(world.settle()) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace gantry::world
