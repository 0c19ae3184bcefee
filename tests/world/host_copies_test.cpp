// SPDX-License-Identifier: BSD-3-Clause
//
// Pageable buffers of large device messages, with a second thread to copy: who copies which pieces.
// The helper of these tests comes at every second call, so the counts are exact; real threads are
// in tests/unit/transfer/host_copies_test.cpp.
#include "transfer/host_copies.hpp"
#include "world/harness/programs.hpp"

namespace gantry::world {
namespace {

struct EverySecondCall final : transfer::CopyHelper {
    explicit EverySecondCall(transfer::HostCopies& which) : copies(which) {}
    void call() override {
        if (++calls % 2 == 0) copies.help();
    }
    transfer::HostCopies& copies;
    std::uint64_t calls = 0;
};

struct Shape {
    Place source, sink;
    Bytes bytes;
};

// Two ranks of a node that do not map each other's memory: everything goes through slots.
Options staged() {
    Options options{.machine = "h200", .ranks_per_node = 2};
    options.change_config = [](config::Config& config) { config.ipc = false; };
    return options;
}

constexpr Bytes kOdd = 3;  // buffers begin here: no piece is aligned

Task<Status> send_one(Rank& rank, Shape shape) {
    Bytebuffer buffer(rank, rank.number == 0 ? shape.source : shape.sink, shape.bytes + kOdd);
    buffer.fill(7);
    if (rank.number == 0) {
        Status sent = co_await send(rank, buffer.part(kOdd, shape.bytes), 1, 1);
        co_return sent;
    }
    buffer.clear();
    Received received = co_await receive(rank, buffer.part(kOdd, shape.bytes), 0, 1);
    GANTRY_CO_TRY(received.status);
    Bytebuffer expected(rank, Place::host, buffer.bytes());
    expected.fill(7);
    const std::byte* came = shape.sink == Place::host
                                ? buffer.address()
                                : rank.device.behind(buffer.address(), buffer.bytes());
    WORLD_CHECK(std::memcmp(came + kOdd, expected.address() + kOdd, shape.bytes) == 0);
    co_return success();
}

// Of the rank whose buffer is pageable.
transfer::HostCopies::Counts counts_of(Shape shape, int pageable_rank) {
    World world(staged());
    transfer::HostCopies& copies = world.rank(pageable_rank).transfer.host_copies;
    EverySecondCall helper(copies);
    copies.share_with(&helper);
    const Ending ending = world.run([shape](Rank& rank) { return send_one(rank, shape); });
    EXPECT_TRUE(ending.good()) << ending;
    EXPECT_TRUE(world.settle());
    EXPECT_EQ(copies.counts().own + copies.counts().helped, helper.calls);
    return copies.counts();
}

TEST(HostCopies, BothThreadsFillTheSlotsOfAPageableSender) {
    for (const Bytes bytes : {2 * kMiB, 4 * kMiB + 12345, 16 * kMiB - 1}) {
        const auto counts = counts_of({Place::host, Place::device, bytes}, 0);
        EXPECT_GT(counts.helped, 0u) << bytes;
        EXPECT_GE(counts.own, counts.helped) << bytes;
        EXPECT_LE(counts.own, counts.helped + 1) << bytes;
    }
}

TEST(HostCopies, BothThreadsEmptyTheSlotsOfAPageableReceiver) {
    for (const Bytes bytes : {2 * kMiB, 4 * kMiB + 12345, 16 * kMiB - 1}) {
        const auto counts = counts_of({Place::device, Place::host, bytes}, 1);
        EXPECT_GT(counts.helped, 0u) << bytes;
        EXPECT_GE(counts.own, counts.helped) << bytes;
        EXPECT_LE(counts.own, counts.helped + 1) << bytes;
    }
}

TEST(HostCopies, SmallMessagesAndHostMessagesAreNotShared) {
    for (const Shape shape :
         {Shape{Place::host, Place::device, kMiB}, Shape{Place::host, Place::host, 8 * kMiB}}) {
        const auto counts = counts_of(shape, 0);
        EXPECT_EQ(counts.own + counts.helped, 0u);
    }
}

}  // namespace
}  // namespace gantry::world
