// SPDX-License-Identifier: BSD-3-Clause
//
// What travels for one message, by protocol and size class, exactly: messages that carry data and
// messages of control, the bytes of both, control messages per chunk, and registrations, at the
// first message with a pair of buffers and at the next ones. The table of docs/wire.md section 5;
// a change of these numbers is a change of the product.
#include "world/harness/programs.hpp"

#include "transfer/notify_flags.hpp"
#include "p2p/wire.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

struct Row {
    const char* way;
    Place source, sink;
    Bytes bytes;
    // protocol | data messages, bytes | control messages, bytes | chunks | registrations at the
    // first message -> at each further one
    const char* travels;
};

void fix_chunk(config::Config& config) {
    config.chunk = 256 * kKiB;
    config.depth = 4;
}

Options options_of(std::string_view way) {
    Options options{.machine = "c2050-qdr", .mechanisms = "all", .change_config = &fix_chunk};
    if (way == "gpudirect" || way == "gpudirect at the sender") {
        options.machine = "h200";
        options.change_machine = [](model::Machine& machine) {
            machine.network.device_memory = true;
        };
        if (way != "gpudirect") options.gpudirect = [](int rank) { return rank == 0; };
    } else if (way == "exposed") {
        options.exposes_from = 64 * kKiB;
    } else if (way == "node") {
        options.ranks_per_node = 2;
    } else if (way == "one gpu") {
        options.machine = "h200";
        options.ranks_per_node = 2;
    } else if (way == "self") {
        options.ranks = 1;
    }
    return options;
}

struct Travelled {
    std::uint64_t data = 0, control = 0, chunks = 0, registered = 0;
    Bytes data_bytes = 0, control_bytes = 0;
};

bool carries_data(int kind) {
    return kind == wire::kEager || kind == wire::kEagerSynchronous || kind == wire::kPayload ||
           kind == transport::fake::kPut;
}

Travelled travelled(World& world) {
    Travelled all;
    for (transport::fake::Fabric* fabric : {&world.network(), &world.shared_memory()}) {
        for (const transport::fake::TraceRow& row : fabric->trace()) {
            const Bytes bytes = row.header_bytes + row.payload_bytes;
            (carries_data(row.kind) ? all.data : all.control) += 1;
            (carries_data(row.kind) ? all.data_bytes : all.control_bytes) += bytes;
            if (row.kind == wire::kChunk) ++all.chunks;
        }
        fabric->reset_counts();
    }
    for (int rank = 0; rank < world.ranks(); ++rank)
        all.registered += world.network().end(rank).stats().registrations.registered;
    return all;
}

// Four messages with the same buffers, each over before the next begins.
constexpr int kMessages = 4;
Task<Status> repeat(Rank& rank, const Row& row, std::vector<Travelled>& seen) {
    const int last = rank.all.size() - 1;
    std::optional<Bytebuffer> out, in;
    if (rank.number == 0) out.emplace(rank, row.source, row.bytes);
    if (rank.number == last) in.emplace(rank, row.sink, row.bytes);
    for (int i = 0; i < kMessages; ++i) {
        const auto key = static_cast<std::uint64_t>(i);
        Result<p2p::Request*> receiving(nullptr), sending(nullptr);
        if (in) receiving = rank.messenger.ireceive(rank.all, in->whole(), 0, 1);
        Status slept = co_await rank.sleep(rank.executor, 20 * kMillisecond);
        GANTRY_CO_TRY(slept);
        if (out) {
            out->fill(key);
            sending =
                rank.messenger.isend(rank.all, out->whole(), last, 1, p2p::SendMode::standard);
            Received sent = co_await finish(rank.executor, rank, std::move(sending));
            GANTRY_CO_TRY(sent.status);
        }
        if (in) {
            Received received = co_await finish(rank.executor, rank, std::move(receiving));
            GANTRY_CO_TRY(received.status);
            WORLD_CHECK(in->holds(key, row.bytes));
        }
        slept = co_await rank.sleep(rank.executor, 20 * kMillisecond);
        GANTRY_CO_TRY(slept);
        if (rank.number == 0) seen.push_back(travelled(rank.world));
    }
    co_return success();
}

// What the receiver decided, or, where it had nothing to decide, what the sender offered.
std::string protocol_of(World& world) {
    const std::string mark = "\"protocol\": \"";
    for (const int rank : {world.ranks() - 1, 0}) {
        const std::string json = world.rank(rank).explain.json(rank);
        const std::size_t at = json.find(mark);
        if (at == json.npos) continue;
        const std::size_t begin = at + mark.size();
        return json.substr(begin, json.find('"', begin) - begin);
    }
    return "?";
}

std::string text_of(const Row& row) {
    World world(options_of(row.way));
    std::vector<Travelled> seen;
    const Ending ending = world.run([&row, &seen](Rank& rank) { return repeat(rank, row, seen); });
    EXPECT_TRUE(ending.good()) << row.way << ": " << ending;
    EXPECT_TRUE(world.settle());
    if (seen.size() != kMessages) return "did not run";
    const Travelled& last = seen.back();
    for (std::size_t i = 1; i < seen.size(); ++i)
        EXPECT_EQ(seen[i].registered, seen[0].registered)
            << row.way << ", " << row.bytes << " bytes: a repeated buffer registers once";
    // Each chunk is told and its slot comes back, over a network only while more is to come; beside
    // that a rendezvous takes three messages at most, whatever its size. A few pieces that nobody
    // has to tell of come back one by one.
    EXPECT_LE(last.control,
              last.chunks > 0 ? 2 * last.chunks + 3 : 2 + transfer::kMostPiecesByFlags);
    const bool all_come_back =
        row.way == std::string_view("node") || row.way == std::string_view("one gpu");
    if (last.chunks > 0 && all_come_back) {
        EXPECT_EQ(last.control, 2 * last.chunks + 2);
    } else if (last.chunks > 0) {
        EXPECT_LE(last.control, 2 * last.chunks + 1);
    }
    return fmt::format("{} | {}, {} | {}, {} | {} | {} -> {}", protocol_of(world), last.data,
                       last.data_bytes, last.control, last.control_bytes, last.chunks,
                       seen[0].registered, last.registered - seen[kMessages - 2].registered);
}

constexpr Place H = Place::host, D = Place::device;
constexpr Row kRows[] = {
    {"self", H, H, 0, "self | 1, 24 | 0, 0 | 0 | 0 -> 0"},
    {"self", H, H, 8, "self | 1, 32 | 0, 0 | 0 | 0 -> 0"},
    {"self", H, H, kKiB, "self | 1, 1048 | 0, 0 | 0 | 0 -> 0"},
    {"self", H, H, 32 * kKiB, "self | 1, 32792 | 0, 0 | 0 | 0 -> 0"},
    {"self", H, H, 32 * kKiB + 1, "self | 0, 0 | 2, 424 | 0 | 0 -> 0"},
    {"self", H, H, kMiB, "self | 0, 0 | 2, 424 | 0 | 0 -> 0"},
    {"self", D, D, 8, "self | 0, 0 | 2, 424 | 0 | 0 -> 0"},
    {"self", D, D, kMiB, "self | 0, 0 | 2, 424 | 0 | 0 -> 0"},
    {"network", H, H, 0, "eager | 1, 24 | 0, 0 | 0 | 0 -> 0"},
    {"network", H, H, 8, "eager | 1, 32 | 0, 0 | 0 | 0 -> 0"},
    {"network", H, H, kKiB, "eager | 1, 1048 | 0, 0 | 0 | 0 -> 0"},
    {"network", H, H, 17 * kKiB, "eager | 1, 17432 | 0, 0 | 0 | 0 -> 0"},
    {"network", H, H, 17 * kKiB + 1, "rdma | 1, 17409 | 3, 448 | 0 | 2 -> 0"},
    {"network", H, H, 256 * kKiB, "rdma | 1, 262144 | 3, 448 | 0 | 2 -> 0"},
    {"network", H, H, kMiB, "rdma | 1, 1048576 | 3, 448 | 0 | 2 -> 0"},
    {"network", H, H, 4 * kMiB, "rdma | 1, 4194304 | 3, 448 | 0 | 2 -> 0"},
    {"exposed", H, H, 17 * kKiB + 1, "rdma | 1, 17409 | 3, 448 | 0 | 2 -> 0"},
    {"exposed", H, H, kMiB, "rdma | 1, 1048576 | 2, 224 | 0 | 0 -> 0"},
    {"exposed", H, D, kMiB, "pipeline | 4, 1048576 | 9, 712 | 4 | 2 -> 0"},
    {"network", D, D, 8, "eager | 1, 16 | 1, 216 | 0 | 0 -> 0"},
    {"network", D, D, kKiB, "eager | 1, 1032 | 1, 216 | 0 | 0 -> 0"},
    {"network", D, D, 17 * kKiB + 1, "pipeline | 1, 17409 | 3, 484 | 1 | 2 -> 0"},
    {"network", D, D, 256 * kKiB, "pipeline | 1, 262144 | 3, 484 | 1 | 2 -> 0"},
    {"network", D, D, kMiB, "pipeline | 4, 1048576 | 9, 712 | 4 | 2 -> 0"},
    {"network", D, D, 4 * kMiB, "pipeline | 16, 4194304 | 33, 1576 | 16 | 2 -> 0"},
    {"network", D, H, 8, "eager | 1, 16 | 1, 216 | 0 | 0 -> 0"},
    {"network", D, H, kKiB, "eager | 1, 1032 | 1, 216 | 0 | 0 -> 0"},
    {"network", D, H, 17 * kKiB + 1, "pipeline | 1, 17409 | 3, 448 | 0 | 2 -> 0"},
    {"network", D, H, 256 * kKiB, "pipeline | 1, 262144 | 3, 448 | 0 | 2 -> 0"},
    {"network", D, H, kMiB, "pipeline | 4, 1048576 | 3, 448 | 0 | 2 -> 0"},
    {"network", D, H, 4 * kMiB, "pipeline | 16, 4194304 | 3, 448 | 0 | 2 -> 0"},
    {"network", H, D, 8, "eager | 1, 32 | 0, 0 | 0 | 0 -> 0"},
    {"network", H, D, kKiB, "eager | 1, 1048 | 0, 0 | 0 | 0 -> 0"},
    {"network", H, D, 17 * kKiB + 1, "pipeline | 1, 17409 | 3, 484 | 1 | 2 -> 0"},
    {"network", H, D, 256 * kKiB, "pipeline | 1, 262144 | 3, 484 | 1 | 2 -> 0"},
    {"network", H, D, kMiB, "pipeline | 4, 1048576 | 9, 712 | 4 | 2 -> 0"},
    {"network", H, D, 4 * kMiB, "pipeline | 16, 4194304 | 33, 1576 | 16 | 2 -> 0"},
    {"node", H, H, 0, "eager | 1, 24 | 0, 0 | 0 | 0 -> 0"},
    {"node", H, H, 8, "eager | 1, 32 | 0, 0 | 0 | 0 -> 0"},
    {"node", H, H, kKiB, "eager | 1, 1048 | 0, 0 | 0 | 0 -> 0"},
    {"node", H, H, 32 * kKiB, "eager | 1, 32792 | 0, 0 | 0 | 0 -> 0"},
    {"node", H, H, 32 * kKiB + 1, "pipeline | 0, 0 | 4, 496 | 1 | 0 -> 0"},
    {"node", H, H, kMiB, "pipeline | 0, 0 | 34, 1576 | 16 | 0 -> 0"},
    {"node", D, D, 8, "pipeline | 0, 0 | 2, 72 | 0 | 0 -> 0"},
    {"node", D, D, 64 * kKiB, "pipeline | 0, 0 | 2, 72 | 0 | 0 -> 0"},
    {"node", D, D, kMiB, "pipeline | 0, 0 | 5, 144 | 0 | 0 -> 0"},
    {"node", D, D, 4 * kMiB, "pipeline | 0, 0 | 34, 1576 | 16 | 0 -> 0"},
    {"one gpu", D, D, 8, "pipeline | 0, 0 | 2, 72 | 0 | 0 -> 0"},
    {"one gpu", D, D, 4 * kMiB, "ipc | 0, 0 | 2, 64 | 0 | 0 -> 0"},
    {"gpudirect", D, D, 8, "rdma | 1, 8 | 3, 448 | 0 | 2 -> 0"},
    {"gpudirect", D, D, 64 * kKiB, "rdma | 1, 65536 | 3, 448 | 0 | 2 -> 0"},
    {"gpudirect", D, D, kMiB, "rdma | 1, 1048576 | 3, 448 | 0 | 2 -> 0"},
    {"gpudirect", D, D, 4 * kMiB, "rdma | 1, 4194304 | 3, 448 | 0 | 2 -> 0"},
    {"gpudirect at the sender", D, D, 64 * kKiB, "pipeline | 1, 65536 | 3, 484 | 1 | 2 -> 0"},
    {"gpudirect at the sender", D, D, kMiB, "pipeline | 4, 1048576 | 7, 664 | 4 | 2 -> 0"},
    {"gpudirect at the sender", D, D, 4 * kMiB, "pipeline | 16, 4194304 | 31, 1528 | 16 | 2 -> 0"},
};

TEST(WireCounts, AreThoseOfTheTable) {
    for (const Row& row : kRows)
        EXPECT_EQ(text_of(row), row.travels) << row.way << ", " << name(row.source) << " to "
                                             << name(row.sink) << ", " << row.bytes << " bytes";
}

}  // namespace
}  // namespace gantry::world
