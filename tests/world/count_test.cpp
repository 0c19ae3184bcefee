// SPDX-License-Identifier: BSD-3-Clause
//
// What each protocol costs, exactly: messages by kind, bytes on the wire, copies by engine, driver
// calls. A change of these numbers is a change of the product: read it before changing the test.
// Pools are warm (one message of the same shape went before) and the receive is posted.
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

#include <fmt/format.h>

namespace gantry::world {
namespace {

namespace wire = p2p::wire;
using model::Operation;

struct Shape {
    Place source, sink;
    Bytes bytes;
};

Task<Status> send_twice(Rank& rank, Shape shape) {
    Bytebuffer buffer(rank, rank.number == 0 ? shape.source : shape.sink, shape.bytes);
    for (std::uint64_t round = 0; round < 2; ++round) {
        Result<p2p::Request*> posted(nullptr);
        if (rank.number == 1) posted = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 1);
        Status slept = co_await rank.sleep(rank.executor,
                                           20 * kMillisecond);  // all of the first round is over
        GANTRY_CO_TRY(slept);
        if (round == 1 && rank.number == 0) {
            rank.world.network().reset_counts();
            rank.world.shared_memory().reset_counts();
            for (int each = 0; each < 2; ++each)
                rank.world.rank(each).device.reset_counts();
        }
        if (rank.number == 0) {
            buffer.fill(round);
            Status sent = co_await send(rank, buffer.whole(), 1, 1);
            GANTRY_CO_TRY(sent);
        } else {
            Received received = co_await finish(rank.executor, rank, std::move(posted));
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(buffer.holds(round, shape.bytes));
        }
        slept = co_await rank.sleep(rank.executor, 20 * kMillisecond);
        GANTRY_CO_TRY(slept);
    }
    co_return success();
}

// "rts 1, cts 1, put 1, finish 1 | 4194304 B | d2h 0 ..." of one message.
std::string cost(Options options, Shape shape) {
    World world(std::move(options));
    const Ending ending = world.run([shape](Rank& rank) { return send_twice(rank, shape); });
    EXPECT_TRUE(ending.good()) << ending;
    const bool shared = world.options().ranks_per_node == 2;
    transport::fake::Fabric& fabric = shared ? world.shared_memory() : world.network();
    std::string text;
    const auto add = [&text](std::string_view what, std::uint64_t count) {
        if (count != 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, count);
    };
    constexpr std::pair<wire::Kind, const char*> kKinds[] = {
        {wire::kEager, "eager"},
        {wire::kEagerSynchronous, "eager_sync"},
        {wire::kRts, "rts"},
        {wire::kCts, "cts"},
        {wire::kChunk, "chunk"},
        {wire::kCredit, "credit"},
        {wire::kFin, "finish"},
        {wire::kEagerCredit, "eager credit"},
        {wire::kPayload, "payload"},
        {wire::kFins, "finish_many"},
        {wire::kRtsFromTemplate, "rts again"},
        {wire::kRtsOtherBuffer, "rts elsewhere"}};
    for (const auto& [kind, name] : kKinds)
        add(name, fabric.count(kind).messages);
    add("put", fabric.puts().messages);
    Bytes data = fabric.puts().payload_bytes + fabric.count(wire::kEager).payload_bytes +
                 fabric.count(wire::kPayload).payload_bytes;
    add("data bytes", data);
    constexpr std::pair<Operation, const char*> kCopies[] = {
        {Operation::d2h, "d2h"},
        {Operation::h2d, "h2d"},
        {Operation::h2d_2d, "h2d two rows"},
        {Operation::d2d, "d2d"},
        {Operation::peer, "peer"},
        {Operation::peer_get, "peer get"},
        {Operation::pageable_d2h, "pageable d2h"},
        {Operation::pageable_h2d, "pageable h2d"}};
    for (int rank = 0; rank < 2; ++rank) {
        const device::fake::Counts& counts = world.rank(rank).device.counts();
        const char* who = rank == 0 ? "sender" : "receiver";
        for (const auto& [operation, name] : kCopies)
            add(fmt::format("{} {}", who, name), counts.copies[static_cast<int>(operation)]);
        add(fmt::format("{} pins", who), counts.pins);
        add(fmt::format("{} opens", who), counts.opens);
    }
    return text;
}

// The user fixes the chunk, so that the counts are those of the protocols and not of the planner's
// taste.
void fix_chunk(config::Config& config) {
    config.chunk = 256 * kKiB;
    config.depth = 4;
}
Options network() {
    return {.machine = "c2050-qdr", .seed = 1, .mechanisms = "all", .change_config = &fix_chunk};
}
Options one_node() {
    Options options = network();
    options.ranks_per_node = 2;
    return options;
}
Options one_gpu() {
    Options options = one_node();
    options.machine = "h200";
    return options;
}

constexpr Place H = Place::host, D = Place::device;

TEST(MessageCost, HostMessagesWithinTheLimitAreOneMessage) {
    EXPECT_EQ(cost(network(), {H, H, 1000}), "eager 1, data bytes 1000");
    EXPECT_EQ(cost(one_node(), {H, H, 1000}), "eager 1, data bytes 1000");
}
TEST(MessageCost, LargeHostMessagesAreOnePut) {
    EXPECT_EQ(cost(network(), {H, H, 4 * kMiB}),
              "rts 1, cts 1, finish 1, put 1, data bytes 4194304");
}
TEST(MessageCost, LargeHostMessagesOfANodeGoThroughCells) {
    EXPECT_EQ(cost(one_node(), {H, H, kMiB}), "rts 1, cts 1, chunk 16, credit 16");
}
TEST(MessageCost, SmallDeviceMessages) {
    EXPECT_EQ(cost(network(), {D, D, 8}),
              "rts 1, payload 1, data bytes 8, sender d2h 1, receiver pageable h2d 1");
    EXPECT_EQ(cost(one_node(), {D, D, 8}), "credit 1, rts again 1, sender d2h 1, receiver h2d 1");
    EXPECT_EQ(cost(one_gpu(), {D, D, 8}),
              "credit 1, rts again 1, sender d2h 1, receiver h2d two rows 1");
    EXPECT_EQ(cost(network(), {H, D, 8}), "eager 1, data bytes 8, receiver pageable h2d 1");
    EXPECT_EQ(cost(network(), {D, H, 8}), "rts 1, payload 1, data bytes 8, sender d2h 1");
}
// A host source on one node starts in host cells before the verdict (8 of 64 KiB) and goes on in
// device slots (14 of 256 KiB): 22 pieces.
TEST(MessageCost, LargeDeviceMessages) {
    EXPECT_EQ(cost(network(), {D, D, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 15, put 16, data bytes 4194304, sender d2h 16, "
              "receiver h2d 16");
    EXPECT_EQ(cost(one_node(), {D, D, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 16, sender d2h 16, receiver h2d 16");
    // A second message: what opening the sender's memory costs is risked, and what lies in slots already
    // goes back.
    EXPECT_EQ(cost(one_gpu(), {D, D, 4 * kMiB}),
              "cts 1, chunk 4, credit 4, finish 1, rts again 1, sender d2h 4, receiver d2d 1, "
              "receiver opens 1");
    EXPECT_EQ(cost(network(), {H, D, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 15, put 16, data bytes 4194304, receiver h2d 16");
    EXPECT_EQ(cost(network(), {D, H, 4 * kMiB}),
              "rts 1, cts 1, finish 1, put 16, data bytes 4194304, sender d2h 16");
    // The second message lies in a device's slots from the first byte on.
    EXPECT_EQ(cost(one_node(), {H, D, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 16, receiver h2d 16, receiver pins 7");
    EXPECT_EQ(cost(one_node(), {D, H, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 16, sender d2h 16");
    EXPECT_EQ(cost(one_gpu(), {H, D, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 16, receiver h2d 16, receiver pins 7");
    EXPECT_EQ(cost(one_gpu(), {D, H, 4 * kMiB}),
              "rts 1, cts 1, chunk 16, credit 16, sender d2h 16");
}

}  // namespace
}  // namespace gantry::world
