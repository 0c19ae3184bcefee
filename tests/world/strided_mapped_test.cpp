// SPDX-License-Identifier: BSD-3-Clause
//
// Strided device memory straight through a mapping: kernels of the process whose blocks they are, one
// launch a side, and the right bytes of blocks in any order.
#include "sanitized.hpp"
#include "strided_cost.hpp"
#include "world/harness/programs.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <random>

namespace gantry::world {
namespace {

using layout::Layout;

constexpr int kTag = 5;

std::byte value(Bytes column, Bytes byte) {
    return static_cast<std::byte>(column * 57 + byte * 3 + 1);
}

std::byte* stored(Rank& rank, Place place, std::byte* address, Bytes bytes) {
    return place == Place::device ? rank.device.behind(address, bytes) : address;
}

// Blocks of any width that make so many bytes, in any order and with room between.
Layout random_blocks(std::mt19937_64& dice, Bytes bytes) {
    std::vector<layout::Block> blocks;
    std::ptrdiff_t at = 0;
    for (Bytes left = bytes; left > 0;) {
        const Bytes width = std::min<Bytes>(left, 1 + dice() % 2000);
        at += static_cast<std::ptrdiff_t>(dice() % 60);
        blocks.push_back({at, width});
        at += static_cast<std::ptrdiff_t>(width);
        left -= width;
    }
    std::shuffle(blocks.begin(), blocks.end(), dice);
    return layout::listed_layout(at + 8, blocks);
}

struct Mapped {
    const char* name;
    bool source_is_packed, sink_is_packed;
    Bytes launches_of_sender, launches_of_receiver;  // of a message, once memory is mapped
    friend std::ostream& operator<<(std::ostream& out, const Mapped& mapped) {
        return out << mapped.name;
    }
};
constexpr Mapped kMapped[] = {{"Packs", false, true, 1, 0},
                              {"Unpacks", true, false, 0, 1},
                              {"PacksAndUnpacks", false, false, 1, 1}};

// Messages with bytes of their own until memory has been mapped for long, each looked at.
Task<Status> through_mapping(Rank& rank, const Layout& from, const Layout& to, int messages) {
    const bool sends = rank.number == 0;
    const Layout& layout = sends ? from : to;
    const Bytes bytes = layout::span_of(layout, 1).bytes() + 64;
    Bytebuffer memory(rank, Place::device, bytes, rank.number);
    const p2p::Buffer whole{memory.address(), 1, &layout};
    std::byte* const stored_bytes = stored(rank, Place::device, memory.address(), bytes);
    std::vector<std::byte> packed(layout.size);
    for (int message = 0; message < messages; ++message) {
        for (Bytes i = 0; i < packed.size(); ++i)
            packed[i] = value(static_cast<Bytes>(message), i);
        std::vector<std::byte> right(bytes, std::byte{0xAB});
        layout::unpack(layout, right.data(), 0, packed.size(), packed.data());
        std::memset(stored_bytes, 0xAB, bytes);
        if (sends) std::memcpy(stored_bytes, right.data(), bytes);
        Status met = co_await meet(rank, kTag + 1);
        GANTRY_CO_TRY(met);
        rank.device.reset_counts();
        if (sends) {
            Status sent = co_await send(rank, whole, 1, kTag);
            GANTRY_CO_TRY(sent);
        } else {
            Received got = co_await receive(rank, whole, 0, kTag);
            GANTRY_CO_TRY(got.status);
            WORLD_CHECK(std::memcmp(stored_bytes, right.data(), bytes) == 0);
        }
    }
    co_return success();
}

class StridedMapped : public testing::TestWithParam<Mapped> {
  protected:
    // What the last of the messages cost each side.
    std::vector<Cost> run(std::uint64_t seed, Bytes bytes, Bytes scratch = 64 * kMiB) {
        std::mt19937_64 dice(seed);
        const Layout list = random_blocks(dice, bytes), other = random_blocks(dice, bytes),
                     packed = layout::contiguous_layout(bytes);
        World world(
            {.machine = "h200",
             .ranks_per_node = 2,
             .seed = seed,
             .jitter = 2 * kMicrosecond,
             .change_config = [&](config::Config& config) { config.device_scratch = scratch; }});
        const Ending ending = world.run([&](Rank& rank) {
            return through_mapping(rank, GetParam().source_is_packed ? packed : list,
                                   GetParam().sink_is_packed ? packed : other, 100);
        });
        EXPECT_TRUE(ending.good()) << ending << ", seed " << seed;
        EXPECT_TRUE(world.settle()) << "something was left over, seed " << seed;
        std::vector<Cost> both;
        for (int rank = 0; rank < 2; ++rank) {
            const device::fake::Counts& counts = world.rank(rank).device.counts();
            both.push_back({counts.all_copies(), 0, counts.row_launches});
        }
        return both;
    }
};

TEST_P(StridedMapped, IsOneLaunchOfWhoKnowsTheBlocks) {
    for (std::uint64_t seed = 1; seed <= repetitions(3); ++seed)
        EXPECT_THAT(run(seed, 1000000 + seed * 7777),
                    testing::ElementsAre(Cost{0, 0, GetParam().launches_of_sender},
                                         Cost{0, 0, GetParam().launches_of_receiver}))
            << "seed " << seed;
}

TEST_P(StridedMapped, WithoutScratchMemoryItArrivesToo) {
    run(7, 200001, 0);
}

INSTANTIATE_TEST_SUITE_P(Every, StridedMapped, testing::ValuesIn(kMapped),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace gantry::world
