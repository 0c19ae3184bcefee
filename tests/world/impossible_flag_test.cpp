// SPDX-License-Identifier: BSD-3-Clause
//
// A request to send that names flags which its sender cannot have: as a rank of another version, or
// one with damaged memory, might send it. Both ends hear of it, and nobody waits for ever.
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

namespace gantry::world {
namespace {

namespace wire = p2p::wire;

struct Named {
    const char* what;
    Bytes bytes, chunk;
    std::uint8_t flag;
};
constexpr Named kImpossible[] = {{"pieces of nothing", 64 * kKiB, 0, 0},
                                 {"too many pieces", 64 * kMiB, 64 * kKiB, 0},
                                 {"behind the last flag", 256 * kKiB, 64 * kKiB, 254},
                                 {"no bytes", 0, 64 * kKiB, 0}};

// Rank 1 hears it from rank 0, before or after its receive is posted.
Task<Status> refuse(Rank& rank, Named named, bool posted) {
    Bytebuffer buffer(rank, Place::device, 64 * kKiB);
    if (rank.number == 0) {  // hears that its message was refused, which it never sent
        Status slept = co_await rank.sleep(rank.executor, kMillisecond);
        co_return slept;
    }
    wire::Rts rts{};
    rts.envelope = {rank.all.context, 0, 7, 0, named.bytes};
    rts.send_id = 1;
    rts.offer.chunk = named.chunk;
    rts.set({9, 128, named.flag});
    Result<p2p::Request*> receive = nullptr;
    const auto post = [&] { receive = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 7); };
    if (posted) post();
    rank.transfer.messages.on_message(0, wire::kRts, wire::bytes_of(rts), {});
    if (!posted) post();
    Received got = co_await finish(rank.executor, rank, std::move(receive));
    WORLD_CHECK(got.status.error_class() == MPI_ERR_INTERN);
    WORLD_CHECK(got.status.text().find("flags that cannot be") != std::string_view::npos);
    co_return success();
}

TEST(ImpossibleFlags, EndTheReceiveAndAreToldToTheSender) {
    for (const Named& named : kImpossible) {
        for (const bool posted : {true, false}) {
            World world({.machine = "h200", .ranks_per_node = 2, .seed = 3});
            const Ending ending =
                world.run([named, posted](Rank& rank) { return refuse(rank, named, posted); });
            EXPECT_TRUE(ending.good()) << named.what << ": " << ending;
            EXPECT_EQ(world.shared_memory().count(wire::kFin).messages, 2u)
                << named.what << ": the refusal, and that nothing is in flight";
            EXPECT_TRUE(world.settle());
        }
    }
}

}  // namespace
}  // namespace gantry::world
