// SPDX-License-Identifier: BSD-3-Clause
//
// Registrations that outlive their use: found again, bounded, dropped when their memory goes away.
#include "transport/registration_cache.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

namespace gantry::transport {
namespace {

// Notes what is registered, and refuses when told to.
class Card final : public Registrar {
  public:
    Status map(std::uint64_t id, const Extent& extent) override {
        if (refuses > 0 || mapped.size() >= most) {
            if (refuses > 0) --refuses;
            return failure(MPI_ERR_NO_MEM, "the card is full");
        }
        for (const auto& [known, other] : mapped)
            overlaps += begin(other) < end(extent) && begin(extent) < end(other);
        mapped[id] = extent;
        return success();
    }
    void unmap(std::uint64_t id) override { EXPECT_EQ(mapped.erase(id), 1u); }
    void gone(std::uint64_t id) override { went.push_back(id); }
    std::vector<std::uint64_t> went;
    static std::uintptr_t begin(const Extent& extent) {
        return reinterpret_cast<std::uintptr_t>(extent.address);
    }
    static std::uintptr_t end(const Extent& extent) { return begin(extent) + extent.bytes; }
    std::map<std::uint64_t, Extent> mapped;
    int overlaps = 0;  // registered where something else was, still
    std::size_t most = 1000;
    int refuses = 0;
};

class RegistrationCacheTest : public ::testing::Test {
  protected:
    static Extent host(std::uintptr_t begin, Bytes bytes) {
        return {.address = reinterpret_cast<void*>(begin), .bytes = bytes};
    }
    static Extent device(std::uintptr_t begin, Bytes bytes, std::uint64_t allocation,
                         std::uintptr_t base, Bytes size) {
        return {.address = reinterpret_cast<void*>(begin),
                .bytes = bytes,
                .place = MemoryPlace::device,
                .allocation = allocation,
                .allocation_base = base,
                .allocation_bytes = size};
    }
    // One use of the memory; the id of its registration.
    std::uint64_t use(const Extent& extent) {
        Result<Region> region = cache.take(extent);
        EXPECT_TRUE(region.ok()) << region.status().text();
        if (!region.ok()) return 0;
        EXPECT_LE(region->address, extent.address);
        cache.give(*region);
        return region->id;
    }
    void expect(std::uint64_t registered, std::uint64_t reused, std::uint64_t evicted,
                std::uint64_t invalidated) {
        const RegistrationCounts& counts = cache.counts();
        EXPECT_EQ(counts.registered, registered);
        EXPECT_EQ(counts.reused, reused);
        EXPECT_EQ(counts.evicted, evicted);
        EXPECT_EQ(counts.invalidated, invalidated);
        EXPECT_EQ(counts.live, card.mapped.size());
        Bytes bytes = 0;
        for (const auto& [id, extent] : card.mapped)
            bytes += extent.bytes;
        EXPECT_EQ(counts.live_bytes, bytes);
    }

    Card card;
    RegistrationCache cache{card, {4, 1000}, HostPages::noticed};
};

TEST_F(RegistrationCacheTest, ARepeatedBufferRegistersOnce) {
    const std::uint64_t first = use(host(4096, 100));
    for (int i = 0; i < 9; ++i)
        EXPECT_EQ(use(host(4096, 100)), first);
    expect(1, 9, 0, 0);
}
TEST_F(RegistrationCacheTest, APartOfARegisteredBufferIsFound) {
    const std::uint64_t first = use(host(4096, 100));
    EXPECT_EQ(use(host(4100, 96)), first);
    EXPECT_NE(use(host(4100, 97)), first);
    expect(2, 1, 0, 0);
}
TEST_F(RegistrationCacheTest, OverlappingHostRangesAreJoined) {
    use(host(100, 50));
    use(host(140, 60));
    use(host(190, 60));
    expect(3, 0, 0, 0);
    EXPECT_EQ(card.mapped.size(), 1u);
    use(host(100, 150));
    expect(3, 1, 0, 0);
}
TEST_F(RegistrationCacheTest, NeighboursThatOnlyTouchStayApart) {
    use(host(100, 50));
    use(host(150, 50));
    EXPECT_EQ(card.mapped.size(), 2u);
}
TEST_F(RegistrationCacheTest, UnmappedMemoryRegistersAnew) {
    const std::uint64_t first = use(host(4096, 100));
    cache.notes().note(4000, 97);  // the first byte
    EXPECT_NE(use(host(4096, 100)), first);
    expect(2, 0, 0, 1);
    cache.notes().note(4000, 96);  // up to the buffer
    cache.notes().note(4196, 100);
    use(host(4096, 100));
    expect(2, 1, 0, 1);
}
TEST_F(RegistrationCacheTest, MemoryUnmappedWhileInUseEndsWithItsUser) {
    Result<Region> region = cache.take(host(4096, 100));
    ASSERT_TRUE(region.ok());
    cache.notes().note(4096, 100);
    Result<Region> second = cache.take(host(4096, 100));
    ASSERT_TRUE(second.ok());
    EXPECT_NE(second->id, region->id);
    EXPECT_EQ(card.mapped.size(), 2u);
    cache.give(*region);
    EXPECT_EQ(card.mapped.size(), 1u);
    cache.give(*second);
    EXPECT_EQ(card.mapped.size(), 1u);
    expect(2, 0, 0, 1);
}
TEST_F(RegistrationCacheTest, LostNotesForgetAllHostMemory) {
    use(host(1000, 10));
    use(host(5000, 10));
    use(device(9000, 10, 7, 9000, 10));
    for (std::size_t i = 0; i <= UnmapNotes::kNotes; ++i)
        cache.notes().note(3000, 1);
    use(host(1000, 10));
    expect(4, 0, 0, 2);
    use(device(9000, 10, 7, 9000, 10));
    expect(4, 1, 0, 2);
}
TEST_F(RegistrationCacheTest, UnmappingsElsewhereAreNotEvenNoted) {
    use(host(1000, 10));
    use(host(5000, 10));
    for (std::size_t i = 0; i <= UnmapNotes::kNotes; ++i) {
        cache.notes().note(6000, 1);
        cache.notes().note(100, 900);
    }
    use(host(1000, 10));
    expect(2, 1, 0, 0);
}
TEST_F(RegistrationCacheTest, NotesComeFromAnyThread) {
    for (std::uintptr_t i = 0; i < 4; ++i)
        use(host(1000 + 1000 * i, 10));
    std::vector<std::thread> threads;
    for (std::uintptr_t i = 0; i < 4; ++i)
        threads.emplace_back([this, i] { cache.notes().note(1000 + 1000 * i, 1); });
    for (std::thread& thread : threads)
        thread.join();
    use(host(1000, 10));
    expect(5, 0, 0, 4);
}
TEST_F(RegistrationCacheTest, UnnoticedHostMemoryIsRegisteredForEachUse) {
    cache.set_host_pages(HostPages::unnoticed);
    use(host(4096, 100));
    use(host(4096, 100));
    expect(2, 0, 0, 0);
    EXPECT_TRUE(card.mapped.empty());
    // At one time it is the same memory, though.
    Result<Region> region = cache.take(host(4096, 100));
    use(host(4096, 100));
    expect(3, 1, 0, 0);
    cache.give(region.value());
    EXPECT_TRUE(card.mapped.empty());
}
TEST_F(RegistrationCacheTest, RailsThatGoByAddressNeedNoNotice) {
    cache.set_host_pages(HostPages::any);
    use(host(4096, 100));
    cache.notes().note(4096, 100);
    use(host(4096, 100));
    expect(1, 1, 0, 0);
}
TEST_F(RegistrationCacheTest, AnAllocationOfADeviceRegistersWholeAndOnce) {
    const std::uint64_t first = use(device(4100, 10, 7, 4096, 400));
    EXPECT_EQ(card.mapped[first].bytes, 400u);
    EXPECT_EQ(use(device(4400, 96, 7, 4096, 400)), first);
    expect(1, 1, 0, 0);
}
TEST_F(RegistrationCacheTest, AnAllocationAboveTheBoundRegistersInPart) {
    const std::uint64_t id = use(device(5000, 10, 7, 4096, 5000));
    EXPECT_EQ(card.mapped[id].bytes, 10u);
}
TEST_F(RegistrationCacheTest, AnotherAllocationAtTheSameDeviceAddressRegistersAnew) {
    use(device(4096, 100, 7, 4096, 400));
    use(device(4096, 100, 8, 4096, 200));
    expect(2, 0, 0, 1);
    EXPECT_EQ(card.mapped.size(), 1u);
    use(host(4096, 100));  // or host memory
    expect(3, 0, 0, 2);
    use(device(4096, 100, 9, 4096, 100));
    expect(4, 0, 0, 3);
    EXPECT_EQ(card.overlaps, 0) << "a card may take the one at that address for the other";
}
TEST_F(RegistrationCacheTest, WhatIsInUseWhereOtherMemoryComesIsToldGone) {
    const Region old = cache.take(device(4096, 100, 7, 4096, 400)).value();
    use(host(4096, 100));
    EXPECT_EQ(card.went, std::vector{old.id});
    cache.give(old);
    EXPECT_FALSE(card.mapped.contains(old.id));
}
TEST_F(RegistrationCacheTest, APartInUseOfWhatRegistersWholeIsNotGone) {
    card.refuses = 1;
    const Region part = cache.take(device(4100, 10, 7, 4096, 900)).value();
    use(device(4200, 10, 7, 4096, 900));
    EXPECT_TRUE(card.went.empty());
    cache.give(part);
}
TEST_F(RegistrationCacheTest, DeviceMemoryWithoutIdentityIsRegisteredForEachUse) {
    use(device(4096, 100, 0, 4096, 400));
    use(device(4096, 100, 0, 4096, 400));
    expect(2, 0, 0, 0);
    EXPECT_TRUE(card.mapped.empty());
}
TEST_F(RegistrationCacheTest, AFullCacheEvictsTheLeastRecentlyUsed) {
    for (std::uintptr_t i = 1; i <= 4; ++i)
        use(host(1000 * i, 10));
    use(host(1000, 10));
    use(host(5000, 10));
    expect(5, 1, 1, 0);
    use(host(1000, 10));
    expect(5, 2, 1, 0);
    use(host(2000, 10));  // it was the one
    expect(6, 2, 2, 0);
}
TEST_F(RegistrationCacheTest, BytesAreBoundedToo) {
    use(host(10000, 600));
    use(host(20000, 300));
    use(host(30000, 200));
    expect(3, 0, 1, 0);
    use(host(40000, 5000));  // more than all: only for its use
    expect(4, 0, 4, 0);
    EXPECT_TRUE(card.mapped.empty());
}
TEST_F(RegistrationCacheTest, WhatIsInUseIsNeverEvicted) {
    std::vector<Region> regions;
    for (std::uintptr_t i = 1; i <= 6; ++i)
        regions.push_back(cache.take(host(1000 * i, 10)).value());
    expect(6, 0, 0, 0);
    for (const Region& region : regions)
        EXPECT_NE(cache.in_use(region.id), nullptr);
    for (const Region& region : regions)
        cache.give(region);
    expect(6, 0, 2, 0);
    EXPECT_EQ(cache.in_use(regions.front().id), nullptr);
}
TEST_F(RegistrationCacheTest, ARefusalOfHostMemoryIsTriedAgainWithoutTheIdleOnes) {
    card.most = 2;
    use(host(1000, 10));
    use(host(2000, 10));
    use(host(3000, 10));
    expect(3, 0, 1, 0);
    card.most = 0;
    EXPECT_FALSE(cache.take(host(4000, 10)).ok());
    EXPECT_EQ(cache.counts().refused, 1u);
}
TEST_F(RegistrationCacheTest, ARefusedAllocationIsTriedInPart) {
    card.refuses = 1;
    const std::uint64_t id = use(device(4100, 10, 7, 4096, 900));
    EXPECT_EQ(card.mapped[id].bytes, 10u);
    card.refuses = 2;
    EXPECT_FALSE(cache.take(device(4200, 10, 7, 4096, 900)).ok());
    expect(1, 0, 0, 0);
}
TEST_F(RegistrationCacheTest, ARefusedAllocationIsNotAskedForAgain) {
    card.refuses = 2;  // whole, and in part
    EXPECT_FALSE(cache.take(device(4100, 10, 7, 4096, 900)).ok());
    EXPECT_FALSE(cache.take(device(4100, 10, 7, 4096, 900)).ok()) << "the card would take it now";
    EXPECT_EQ(cache.counts().refused, 1u);
    use(device(4100, 10, 8, 4096, 900));  // another one at that address
    card.refuses = 100;
    EXPECT_FALSE(cache.take(host(100, 10)).ok());
    card.refuses = 0;
    use(host(100, 10));  // host memory is always asked for
}
TEST_F(RegistrationCacheTest, WithoutEntriesNothingOutlivesItsUse) {
    RegistrationCache none(card, {0, 1000}, HostPages::noticed);
    for (int i = 0; i < 2; ++i)
        none.give(none.take(host(4096, 100)).value());
    EXPECT_EQ(none.counts().registered, 2u);
    EXPECT_TRUE(card.mapped.empty());
}
TEST(RegistrationCache, LeavesNothingBehind) {
    Card card;
    {
        RegistrationCache cache(card, {16, 1 << 20}, HostPages::noticed);
        std::uint64_t dice = 1;
        std::vector<Region> held;
        for (int i = 0; i < 20000; ++i) {
            dice = dice * 6364136223846793005u + 1442695040888963407u;
            const std::uint64_t roll = dice >> 33;
            const std::uintptr_t begin = 4096 + roll % 4000;
            const Bytes bytes = 1 + roll / 4000 % 900;
            if (roll % 7 == 0) cache.notes().note(begin, bytes);
            const Extent extent{.address = reinterpret_cast<void*>(begin),
                                .bytes = bytes,
                                .place = roll % 3 == 0 ? MemoryPlace::device : MemoryPlace::host,
                                .allocation = roll % 3 == 0 ? 1 + roll % 2 : 0,
                                .allocation_base = 4096,
                                .allocation_bytes = 5000};
            Result<Region> region = cache.take(extent);
            ASSERT_TRUE(region.ok());
            ASSERT_LE(reinterpret_cast<std::uintptr_t>(region->address), begin);
            ASSERT_GE(reinterpret_cast<std::uintptr_t>(region->address) + region->bytes,
                      begin + bytes);
            held.push_back(*region);
            if (held.size() > roll % 8) {
                cache.give(held.front());
                held.erase(held.begin());
            }
            ASSERT_EQ(cache.counts().live, card.mapped.size());
        }
    }
    EXPECT_TRUE(card.mapped.empty());
}

}  // namespace
}  // namespace gantry::transport
