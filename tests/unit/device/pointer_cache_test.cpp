// SPDX-License-Identifier: BSD-3-Clause
//
// What a pointer is, and exactly how many questions finding out costs. The driver is a table of
// allocations that counts what it is asked; addresses are never touched.
#include "device/pointer_cache.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace gantry::device {
namespace {

class TableOfAllocations final : public PointerQuery {
  public:
    std::uint64_t allocate(std::uintptr_t base, Bytes size, MemoryKind kind = MemoryKind::device,
                           IpcKind ipc = IpcKind::legacy) {
        Allocation allocation;
        allocation.location = {kind, 0, ipc, ++last_id_, base, size};
        allocation.context = 77;
        table_[base] = allocation;
        return last_id_;
    }
    void free(std::uintptr_t base) { table_.erase(base); }

    Result<Allocation> describe(std::uintptr_t address) override {
        ++descriptions;
        const Allocation* found = find(address);
        return found != nullptr ? *found : Allocation{};
    }
    std::uint64_t buffer_id(std::uintptr_t address) override {
        ++confirmations;
        const Allocation* found = find(address);
        return found != nullptr ? found->location.buffer_id : 0;
    }
    bool is_readable(std::uintptr_t address) override { return !nothing.contains(address); }
    void first_use(const Allocation& allocation, std::uintptr_t) override {
        used.push_back(allocation.location.buffer_id);
    }

    int descriptions = 0;
    int confirmations = 0;
    int queries() const { return descriptions + confirmations; }
    std::vector<std::uint64_t> used;
    std::set<std::uintptr_t> nothing;  // addresses where there is no memory

  private:
    const Allocation* find(std::uintptr_t address) const {
        for (const auto& [base, allocation] : table_)
            if (address - base < allocation.location.size) return &allocation;
        return nullptr;
    }
    std::map<std::uintptr_t, Allocation> table_;
    std::uint64_t last_id_ = 100;
};

constexpr std::uintptr_t kBase = 0x7e0000000000;
const void* at(std::uintptr_t address) {
    return reinterpret_cast<const void*>(address);
}

struct PointerCacheTest : testing::Test {
    TableOfAllocations driver;
    PointerCache cache{driver};

    Location location(std::uintptr_t address, Bytes bytes) {
        Result<Location> result = cache.classify(at(address), bytes);
        EXPECT_TRUE(result.ok()) << result.status().text();
        return result.ok() ? *result : Location{};
    }
    int error(std::uintptr_t address, Bytes bytes) {
        return cache.classify(at(address), bytes).status().error_class();
    }
};

int static_buffer[1024];

TEST_F(PointerCacheTest, AsksNothingAboutStaticData) {
    for (int use = 0; use < 3; ++use) {
        Result<Location> found = cache.classify(static_buffer, sizeof(static_buffer));
        ASSERT_TRUE(found.ok());
        EXPECT_EQ(found->kind, MemoryKind::host);
    }
    EXPECT_EQ(driver.queries(), 0);
}

TEST_F(PointerCacheTest, AsksNothingAboutTheStackOfAnyThread) {
    int mine[64] = {};
    EXPECT_TRUE(cache.classify(mine, sizeof(mine)).ok());
    std::thread other([this] {
        int theirs[64] = {};
        EXPECT_TRUE(cache.classify(theirs, sizeof(theirs)).ok());
    });
    other.join();
    EXPECT_EQ(driver.queries(), 0);
}

TEST_F(PointerCacheTest, AsksNothingAboutTheBreakHeap) {
    void* memory = sbrk(4096);
    ASSERT_NE(memory, reinterpret_cast<void*>(-1));
    EXPECT_TRUE(cache.classify(memory, 4096).ok());
    EXPECT_EQ(driver.queries(), 0);
}

TEST_F(PointerCacheTest, AsksOnceAtEachUseOfMappedHostMemory) {
    void* memory = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    for (int use = 1; use <= 3; ++use) {
        EXPECT_TRUE(cache.classify(memory, 4096).ok());
        EXPECT_EQ(driver.queries(), use);
    }
    munmap(memory, 4096);
}

TEST_F(PointerCacheTest, NoBytesAreHostMemoryWhereverTheyAre) {
    driver.allocate(kBase, 4096);
    EXPECT_EQ(location(kBase, 0).kind, MemoryKind::host);
    EXPECT_EQ(location(0, 0).kind, MemoryKind::host);
    EXPECT_EQ(driver.queries(), 0);
}

TEST_F(PointerCacheTest, ARepeatedDeviceBufferCostsOneConfirmation) {
    const std::uint64_t id = driver.allocate(kBase, 1 << 20);
    EXPECT_EQ(location(kBase + 100, 1000).buffer_id, id);
    EXPECT_EQ(driver.descriptions, 1);
    EXPECT_EQ(driver.confirmations, 0);
    for (int use = 1; use <= 3; ++use) {
        EXPECT_TRUE(location(kBase + 100, 1000).on_device());
        EXPECT_EQ(driver.descriptions, 1);
        EXPECT_EQ(driver.confirmations, use);
    }
}

TEST_F(PointerCacheTest, AnotherPartOfAKnownAllocationCostsOneConfirmation) {
    driver.allocate(kBase, 1 << 20);
    location(kBase, 8);
    EXPECT_EQ(location(kBase + 4096, 8).base, kBase);
    EXPECT_EQ(driver.descriptions, 1);
    EXPECT_EQ(driver.confirmations, 1);
}

TEST_F(PointerCacheTest, TheLastAllocationIsConfirmedByOneQueryForBuffersInIt) {
    driver.allocate(kBase, 4096);
    EXPECT_FALSE(cache.in_the_last(at(kBase), 8)) << "nothing is known yet";
    location(kBase, 8);
    const int before = driver.queries();
    EXPECT_TRUE(cache.in_the_last(at(kBase + 4088), 8));
    EXPECT_FALSE(cache.in_the_last(at(kBase + 4088), 9));
    EXPECT_FALSE(cache.in_the_last(at(kBase - 1), 8));
    EXPECT_FALSE(cache.in_the_last(at(kBase + 4096), 0));
    EXPECT_FALSE(cache.in_the_last(at(kBase + 8), ~Bytes{0}));
    EXPECT_EQ(driver.queries(), before);
    ASSERT_NE(cache.confirm_last(at(kBase + 4088)), nullptr);
    EXPECT_EQ(driver.queries(), before + 1);
    // Freed, and freed and given again: not that allocation any more.
    driver.free(kBase);
    EXPECT_EQ(cache.confirm_last(at(kBase)), nullptr);
    const std::uint64_t fresh = driver.allocate(kBase, 4096);
    EXPECT_EQ(cache.confirm_last(at(kBase)), nullptr);
    EXPECT_EQ(location(kBase, 8).buffer_id, fresh);
    EXPECT_NE(cache.confirm_last(at(kBase)), nullptr);
}

TEST_F(PointerCacheTest, OfTwoAllocationsInTurnBothAreTheLast) {
    constexpr std::uintptr_t kOther = kBase + (1 << 20), kThird = kBase + (1 << 21);
    const std::uint64_t first = driver.allocate(kBase, 4096);
    const std::uint64_t second = driver.allocate(kOther, 4096);
    driver.allocate(kThird, 4096);
    location(kBase, 8);
    location(kOther, 8);
    for (int turn = 0; turn < 3; ++turn) {
        ASSERT_TRUE(cache.in_the_last(at(kBase), 8));
        EXPECT_EQ(cache.confirm_last(at(kBase))->location.buffer_id, first);
        ASSERT_TRUE(cache.in_the_last(at(kOther), 8));
        EXPECT_EQ(cache.confirm_last(at(kOther))->location.buffer_id, second);
    }
    location(kThird, 8);
    location(kOther, 8);
    EXPECT_FALSE(cache.in_the_last(at(kBase), 8));
    EXPECT_TRUE(cache.in_the_last(at(kThird), 8));
    EXPECT_TRUE(cache.in_the_last(at(kOther), 8));
}

TEST_F(PointerCacheTest, FirstUseIsToldOncePerBuffer) {
    const std::uint64_t first = driver.allocate(kBase, 4096);
    const std::uint64_t second = driver.allocate(kBase + (1 << 20), 4096);
    for (int use = 0; use < 3; ++use) {
        location(kBase, 8);
        location(kBase + (1 << 20), 8);
    }
    EXPECT_EQ(driver.used, (std::vector<std::uint64_t>{first, second}));
}

TEST_F(PointerCacheTest, FreedDeviceMemoryAtAReusedAddressIsANewBuffer) {
    const std::uint64_t first = driver.allocate(kBase, 4096);
    EXPECT_EQ(location(kBase, 4096).buffer_id, first);
    driver.free(kBase);
    const std::uint64_t second = driver.allocate(kBase, 8192);
    const Location now = location(kBase, 8192);
    EXPECT_EQ(now.buffer_id, second);
    EXPECT_EQ(now.size, 8192u);
}

TEST_F(PointerCacheTest, AFreedDeviceAddressThatIsHostMemoryNowIsHostMemory) {
    driver.allocate(kBase, 4096);
    location(kBase, 8);
    driver.free(kBase);
    EXPECT_EQ(location(kBase, 8).kind, MemoryKind::host);
    driver.descriptions = driver.confirmations = 0;
    EXPECT_EQ(location(kBase, 8).kind, MemoryKind::host);
    EXPECT_EQ(driver.queries(), 1)
        << "the stale answer is gone: only the question for mapped memory remains";
}

TEST_F(PointerCacheTest, DeviceMemoryAtAFreedHostAddressIsDeviceMemory) {
    EXPECT_EQ(location(kBase, 4096).kind, MemoryKind::host);
    driver.allocate(kBase, 4096);
    EXPECT_EQ(location(kBase, 4096).kind, MemoryKind::device);
}

TEST_F(PointerCacheTest, ABufferThatLeavesItsAllocationIsAnError) {
    driver.allocate(kBase, 4096);
    EXPECT_EQ(error(kBase, 4097), MPI_ERR_BUFFER);
    EXPECT_EQ(error(kBase + 4095, 2), MPI_ERR_BUFFER);
    EXPECT_EQ(error(kBase, 4096), MPI_SUCCESS);
}

TEST_F(PointerCacheTest, ABufferAcrossTwoAllocationsIsAnErrorEvenWhenTheyTouch) {
    driver.allocate(kBase, 4096);
    driver.allocate(kBase + 4096, 4096);
    EXPECT_EQ(error(kBase + 2048, 4096), MPI_ERR_BUFFER);
}

TEST_F(PointerCacheTest, VirtualMemoryGoesOnFromMappingToMapping) {
    driver.allocate(kBase, 4096, MemoryKind::device, IpcKind::none);
    driver.allocate(kBase + 4096, 4096, MemoryKind::device, IpcKind::none);
    EXPECT_TRUE(location(kBase + 100, 8000).on_device());
    EXPECT_EQ(error(kBase + 100, 8192), MPI_ERR_BUFFER)
        << "nothing is mapped behind the second one";
}

TEST_F(PointerCacheTest, HostMemoryThatRunsIntoKnownDeviceMemoryIsAnError) {
    driver.allocate(kBase, 4096);
    location(kBase, 8);
    EXPECT_EQ(error(kBase - 4096, 8192), MPI_ERR_BUFFER);
    driver.free(kBase);
    EXPECT_EQ(error(kBase - 4096, 8192), MPI_SUCCESS) << "the device memory has been freed";
}

TEST_F(PointerCacheTest, ABufferBeyondTheAddressSpaceIsAnError) {
    driver.allocate(kBase, 4096);
    EXPECT_EQ(error(kBase, ~Bytes{0}), MPI_ERR_BUFFER);
}

TEST_F(PointerCacheTest, PartlyPinnedMemoryIsTreatedAsPageable) {
    driver.allocate(kBase, 4096, MemoryKind::pinned);
    EXPECT_EQ(location(kBase, 4096).kind, MemoryKind::pinned);
    EXPECT_EQ(location(kBase, 4097).kind, MemoryKind::host);
}

// A send that waited for the progress thread while its context was reset; the processor must not go
// there.
TEST_F(PointerCacheTest, MemoryThatIsGoneIsAnErrorAndNotHostMemory) {
    driver.allocate(kBase, 4096);
    location(kBase, 4096);
    driver.free(kBase);
    driver.nothing.insert(kBase);
    EXPECT_EQ(error(kBase, 4096), MPI_ERR_BUFFER);
    driver.nothing.clear();  // the program mapped host memory there
    EXPECT_EQ(location(kBase, 4096).kind, MemoryKind::host);
}

TEST_F(PointerCacheTest, AnAnswerWithoutAnIdentityIsNotKept) {
    driver.allocate(kBase, 4096, MemoryKind::pinned);
    class Nameless final : public PointerQuery {
      public:
        Result<Allocation> describe(std::uintptr_t) override {
            ++asked;
            Allocation pinned;
            pinned.location = {MemoryKind::pinned, -1, IpcKind::none, 0, kBase, 4096};
            return pinned;
        }
        std::uint64_t buffer_id(std::uintptr_t) override { return 0; }
        bool is_readable(std::uintptr_t) override { return true; }
        void first_use(const Allocation&, std::uintptr_t) override {}
        int asked = 0;
    } nameless;
    PointerCache other(nameless);
    EXPECT_EQ(other.classify(at(kBase), 8)->kind, MemoryKind::pinned);
    EXPECT_EQ(other.classify(at(kBase), 8)->kind, MemoryKind::pinned);
    EXPECT_EQ(nameless.asked, 2);
    EXPECT_EQ(other.size(), 0u);
}

TEST_F(PointerCacheTest, MemoryOfADestroyedContextIsForgotten) {
    driver.allocate(kBase, 4096);
    location(kBase, 8);
    EXPECT_NE(cache.known(at(kBase + 8)), nullptr);
    cache.forget_context(77);
    EXPECT_EQ(cache.known(at(kBase + 8)), nullptr);
}

TEST_F(PointerCacheTest, ARangeThatIsOursNowIsForgotten) {
    driver.allocate(kBase, 4096);
    driver.allocate(kBase + 8192, 4096);
    location(kBase, 8);
    location(kBase + 8192, 8);
    cache.forget_range(at(kBase + 4000), 4096);
    EXPECT_EQ(cache.known(at(kBase)), nullptr);
    EXPECT_NE(cache.known(at(kBase + 8192)), nullptr);
}

TEST_F(PointerCacheTest, RandomFreesAndReusesNeverGiveAStaleAnswer) {
    const unsigned seed = 20260;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    unsigned state = seed;
    const auto random = [&state](unsigned below) {
        state = state * 1664525u + 1013904223u;
        return (state >> 8) % below;
    };
    std::map<std::uintptr_t, std::pair<std::uint64_t, Bytes>> live;
    for (int step = 0; step < 20000; ++step) {
        const std::uintptr_t slot = kBase + random(64) * 65536;
        const auto found = live.find(slot);
        if (random(4) == 0) {
            if (found != live.end()) {
                driver.free(slot);
                live.erase(found);
            } else {
                const Bytes size = 4096 * (1 + random(16));
                const std::uint64_t id = driver.allocate(slot, size);
                live[slot] = {id, size};
            }
            continue;
        }
        const Bytes offset = random(65536);
        const Location now = location(slot + offset, 1);
        const bool inside = found != live.end() && offset < found->second.second;
        ASSERT_EQ(now.on_device(), inside) << "step " << step;
        if (inside) {
            ASSERT_EQ(now.buffer_id, found->second.first) << "step " << step;
        }
    }
}

}  // namespace
}  // namespace gantry::device
