// SPDX-License-Identifier: BSD-3-Clause
//
// What only a network shows: slots that are granted to the peer, messages that overtake their
// own envelope.
#include "sanitized.hpp"
#include "p2p/wire.hpp"
#include "world/harness/programs.hpp"

#include <memory>
#include <vector>

namespace gantry::world {
namespace {

// Both ranks send many messages of every pair of kinds at once, received in the opposite order.
Task<Status> flood(Rank& rank, int messages, Bytes bytes) {
    std::vector<std::unique_ptr<Bytebuffer>> out, in;
    std::vector<Result<p2p::Request*>> requests;
    const int peer = 1 - rank.number;
    for (int i = 0; i < messages; ++i) {
        out.push_back(
            std::make_unique<Bytebuffer>(rank, i % 2 == 0 ? Place::device : Place::host, bytes));
        in.push_back(
            std::make_unique<Bytebuffer>(rank, i % 4 < 2 ? Place::device : Place::host, bytes));
        out.back()->fill(static_cast<std::uint64_t>(100 * rank.number + i));
    }
    for (int i = 0; i < messages; ++i)
        requests.push_back(rank.messenger.isend(rank.all, out[static_cast<std::size_t>(i)]->whole(),
                                                peer, i, p2p::SendMode::standard));
    for (int i = messages - 1; i >= 0; --i)
        requests.push_back(
            rank.messenger.ireceive(rank.all, in[static_cast<std::size_t>(i)]->whole(), peer, i));
    for (Result<p2p::Request*>& request : requests) {
        Received ended = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(ended.status);
    }
    for (int i = 0; i < messages; ++i)
        if (!in[static_cast<std::size_t>(i)]->holds(static_cast<std::uint64_t>(100 * peer + i),
                                                    bytes))
            co_return failure(MPI_ERR_OTHER, "message {} has wrong data", i);
    co_return success();
}

TEST(NetworkPools, SmallerThanWhatBothRanksSendAtOnceOnlyMakeThemWait) {
    for (const char* machine : {"c2050-qdr", "h200"}) {
        for (const Bytes pool : {kMiB / 2, kMiB, 2 * kMiB}) {
            World world(
                {.machine = machine,
                 .ranks = 2,
                 .seed = 3,
                 .jitter = 2 * kMicrosecond,
                 .change_config = [pool](config::Config& config) { config.device_pool = pool; }});
            const Ending ending = world.run([](Rank& rank) { return flood(rank, 24, kMiB + 5); });
            EXPECT_TRUE(ending.good()) << machine << ", pool " << pool << ": " << ending;
            EXPECT_TRUE(world.settle()) << machine << ", pool " << pool;
        }
    }
}

// Rank 0 sends one device message; rank 1 does what it is told to.
Task<Status> send_one(Rank& rank, Bytes bytes, bool received) {
    Bytebuffer buffer(rank, Place::device, bytes);
    if (rank.number == 0) buffer.fill(7);
    if (rank.number == 1 && !received) co_return success();
    Result<p2p::Request*> request =
        rank.number == 0
            ? rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard)
            : rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0);
    Received ended = co_await finish(rank.executor, rank, std::move(request));
    GANTRY_CO_TRY(ended.status);
    if (!buffer.holds(7, bytes)) co_return failure(MPI_ERR_OTHER, "wrong data");
    co_return success();
}

// A send costs a network's processor microseconds; the copy engine works meanwhile. So does every
// copy that is started: the request waits for the first piece's alone.
TEST(NetworkDeviceMessages, AreBeingCopiedWhenTheirRequestLeaves) {
    for (const Bytes bytes : {Bytes{8}, 4 * kKiB, 4 * kMiB}) {
        World* running = nullptr;
        int copies = -1;
        World world({.machine = "h200", .on_send = [&](int rank, transport::MessageKind kind) {
                         if (rank == 0 && kind == p2p::wire::kRts)
                             copies = running->rank(0).device.in_flight();
                         return success();
                     }});
        running = &world;
        const Ending ending =
            world.run([bytes](Rank& rank) { return send_one(rank, bytes, true); });
        EXPECT_TRUE(ending.good()) << bytes << ": " << ending;
        EXPECT_EQ(copies, 1) << bytes << " bytes";
    }
}

// A small copy from pageable memory is as fast as one from a slot, and takes none.
TEST(NetworkDeviceMessages, OfOneMessageAreKeptInSlotsWhereTheDriverWouldStageThem) {
    for (const Bytes bytes : {8 * kKiB, 32 * kKiB}) {
        World world({.machine = "h200"});
        const Ending ending =
            world.run([bytes](Rank& rank) { return send_one(rank, bytes, true); });
        EXPECT_TRUE(ending.good()) << ending;
        const auto& counts = world.rank(1).device.counts();
        const auto of = [&](model::Operation operation) {
            return counts.copies[static_cast<int>(operation)];
        };
        const bool in_slots = bytes == 32 * kKiB;
        EXPECT_EQ(of(model::Operation::h2d), in_slots ? 1u : 0u) << bytes;
        EXPECT_EQ(of(model::Operation::pageable_h2d), in_slots ? 0u : 1u) << bytes;
        EXPECT_TRUE(world.settle()) << "slots are given back";
    }
}

TEST(NetworkDeviceMessages, WhoseRequestCannotLeaveFailWithItsReason) {
    for (const Bytes bytes : {Bytes{8}, 4 * kMiB}) {
        World world({.machine = "h200", .on_send = [](int, transport::MessageKind kind) {
                         return kind == p2p::wire::kRts
                                    ? failure(MPI_ERR_NO_MEM, "the network has no room")
                                    : success();
                     }});
        const Ending ending =
            world.run([bytes](Rank& rank) { return send_one(rank, bytes, false); });
        EXPECT_FALSE(ending.good()) << bytes;
        EXPECT_EQ(ending.of(0).error_class(), MPI_ERR_NO_MEM) << bytes << ": " << ending;
        EXPECT_TRUE(world.settle()) << bytes;
    }
}

// The first message is refused by the network, the second is not; 1 receives the second only.
Task<Status> send_after_a_refusal(Rank& rank, Place place, Bytes bytes) {
    Bytebuffer buffer(rank, place, bytes);
    if (rank.number == 1) {
        Received ended = co_await finish(rank.executor, rank,
                                         rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0));
        GANTRY_CO_TRY(ended.status);
        if (!buffer.holds(9, bytes)) co_return failure(MPI_ERR_OTHER, "wrong data");
        co_return success();
    }
    const auto send = [&] {
        return rank.messenger.isend(rank.all, buffer.whole(), 1, 0, p2p::SendMode::standard);
    };
    buffer.fill(7);
    Received refused = co_await finish(rank.executor, rank, send());
    if (refused.status.error_class() != MPI_ERR_NO_MEM)
        co_return failure(MPI_ERR_OTHER, "not refused: {}", refused.status.text());
    buffer.fill(9);
    Received sent = co_await finish(rank.executor, rank, send());
    co_return sent.status;
}

TEST(NetworkOrder, AMessageThatCannotLeaveHoldsUpNoneBehindIt) {
    for (const Place place : {Place::host, Place::device})
        for (const Bytes bytes : {Bytes{8}, 256 * kKiB, 4 * kMiB}) {
            int envelopes = 0;
            World world({.machine = "h200", .on_send = [&](int rank, transport::MessageKind kind) {
                             const bool envelope = rank == 0 && (kind == p2p::wire::kEager ||
                                                                 kind == p2p::wire::kRts);
                             return envelope && ++envelopes == 1
                                        ? failure(MPI_ERR_NO_MEM, "the network has no room")
                                        : success();
                         }});
            const Ending ending =
                world.run([&](Rank& rank) { return send_after_a_refusal(rank, place, bytes); });
            EXPECT_TRUE(ending.good()) << bytes << ": " << ending;
            EXPECT_EQ(envelopes, 2);
            EXPECT_TRUE(world.settle()) << bytes;
        }
}

TEST(NetworkOrder, PiecesThatOvertakeTheirEnvelopeAreNotLost) {
    for (std::uint64_t seed = 1; seed <= repetitions(8); ++seed) {
        World world({.machine = "c2050-qdr",
                     .ranks = 2,
                     .ranks_per_node = 2,
                     .seed = seed,
                     .jitter = 200 * kMicrosecond,
                     .shared_memory_order = transport::fake::Order::shuffled});
        const Ending ending = world.run([](Rank& rank) { return flood(rank, 8, 100 * kKiB + 5); });
        EXPECT_TRUE(ending.good()) << ending;
        EXPECT_TRUE(world.settle()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace gantry::world
