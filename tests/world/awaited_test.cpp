// SPDX-License-Identifier: BSD-3-Clause
//
// Who waits for a message that ends with a copy of this process goes on before the transports are
// asked again (Core::await): what the program does next may be what its peer waits for.
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

constexpr Bytes kBytes = 4 * kKiB;
constexpr int kTag = 7;
constexpr int kRounds = 200;  // by then the mapping has repaid itself: the receiver reads

enum class Receive : std::uint8_t { blocking, nonblocking };

// Looks at the transport in the turn in which rank 1's last receive ended.
Task<Status> receive_in_turns(Rank& rank, Receive how, std::uint64_t& looks) {
    Bytebuffer buffer(rank, Place::device, kBytes, rank.number);
    const transport::fake::FakeTransport& transport = rank.world.shared_memory().end(rank.number);
    for (int round = 0; round < kRounds; ++round) {
        if (rank.number == 0) {
            buffer.fill(static_cast<std::uint64_t>(round));
            Received sent = co_await finish(
                rank.executor, rank,
                rank.messenger.isend(rank.all, buffer.whole(), 1, kTag, p2p::SendMode::standard));
            GANTRY_CO_TRY(sent.status);
            continue;
        }
        Result<p2p::Request*> request =
            how == Receive::blocking
                ? rank.messenger.receive_to_wait(rank.all, buffer.whole(), 0, kTag)
                : rank.messenger.ireceive(rank.all, buffer.whole(), 0, kTag);
        GANTRY_CO_TRY(request.status());
        while (!(*request)->done) {
            looks = transport.looks();
            co_await rank.turn();
        }
        looks = transport.looks() - looks;
        Received got = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(got.status);
        WORLD_CHECK(buffer.holds(static_cast<std::uint64_t>(round), kBytes));
    }
    if (rank.number == 1)
        WORLD_CHECK(rank.device.counts().copies[static_cast<int>(model::Operation::peer_get)] > 0);
    co_return success();
}

std::uint64_t looks_in_the_last_turn(Receive how) {
    Options options{.machine = "h200", .ranks_per_node = 2, .seed = 3};
    options.change_machine = [](model::Machine& machine) {
        machine.gpu.calls.ipc_pair = 0;
        machine.gpu.calls.ipc_open_peer = 20 * kMicrosecond;
        machine.gpu.peer_get = machine.gpu.peer;  // no RTR is sent
    };
    World world(options);
    std::uint64_t looks = 99;
    const Ending ending =
        world.run([&looks, how](Rank& rank) { return receive_in_turns(rank, how, looks); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle()) << "something was left over";
    return looks;
}

// The world moves a rank until nothing happens any more: each pass looks once, but for that which
// ended what somebody waits for.
TEST(Awaited, ABlockingReceiveGoesOnBeforeTheTransportIsAsked) {
    EXPECT_EQ(looks_in_the_last_turn(Receive::nonblocking),
              looks_in_the_last_turn(Receive::blocking) + 1);
}

}  // namespace
}  // namespace gantry::world
