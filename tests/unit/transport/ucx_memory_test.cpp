// SPDX-License-Identifier: BSD-3-Clause
//
// Registrations with a real UCX, and its hooks that tell of unmapped memory. Over TCP of this
// machine nothing keeps pages; the hooks are asked for all the same.
#include "device/host_memory.hpp"
#include "ucx_world.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

#include <cstdlib>

namespace gantry::transport::ucx {
namespace {

class UcxMemory : public ::testing::Test {
  protected:
    void SetUp() override {
        const QuietStart quiet(config);
        Result<std::unique_ptr<Library>> found = Library::load(config);
        if (!found.ok()) GTEST_SKIP() << "not run: " << found.status().text();
        library = std::move(*found);
        Result<std::vector<Rail>> opened = open_rails(*library, config);
        ASSERT_TRUE(opened.ok()) << opened.status().text();
        rails = std::move(*opened);
    }
    // One use; the id of the registration.
    static std::uint64_t use(Memory& memory, void* address, Bytes bytes) {
        Result<Region> region = memory.add({.address = address, .bytes = bytes});
        EXPECT_TRUE(region.ok()) << region.status().text();
        if (!region.ok()) return 0;
        EXPECT_FALSE(memory.key(*region).view().empty());
        EXPECT_EQ(memory.at(region->id, 0, bytes), static_cast<std::byte*>(address));
        memory.remove(*region);
        EXPECT_EQ(memory.at(region->id, 0, 1), nullptr) << "nobody uses it: no put lands there";
        return region->id;
    }
    static Extent on_device(void* base, Bytes allocation_bytes, Bytes bytes,
                            std::uint64_t allocation) {
        return {.address = base,
                .bytes = bytes,
                .place = MemoryPlace::device,
                .allocation = allocation,
                .allocation_base = reinterpret_cast<std::uintptr_t>(base),
                .allocation_bytes = allocation_bytes};
    }
    // UCX's hooks, by name.
    auto set_handler() const {
        return reinterpret_cast<decltype(&::ucm_set_event_handler)>(
            library->find("ucm_set_event_handler"));
    }
    auto unset_handler() const {
        return reinterpret_cast<decltype(&::ucm_unset_event_handler)>(
            library->find("ucm_unset_event_handler"));
    }
    static void* map(void* where) {
        return mmap(where, kBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | (where != nullptr ? MAP_FIXED : 0), -1, 0);
    }
    static constexpr Bytes kBytes = 256 * kKiB;
    static constexpr RegistrationLimits kLimits{16, kGiB};
    config::Config config;
    std::unique_ptr<Library> library;
    std::vector<Rail> rails;
};

TEST_F(UcxMemory, ARepeatedBufferRegistersOnceAndKeepsItsKey) {
    Memory memory(*library, rails, kLimits, Watching::always);
    std::vector<std::byte> buffer(kBytes);
    const std::uint64_t first = use(memory, buffer.data(), buffer.size());
    for (int i = 0; i < 9; ++i)
        EXPECT_EQ(use(memory, buffer.data(), buffer.size()), first);
    EXPECT_EQ(memory.counts().registered, memory.host_pages() == HostPages::unnoticed ? 10u : 1u);
}

TEST_F(UcxMemory, AFreedAndReusedAddressRegistersAnew) {
    Memory memory(*library, rails, kLimits, Watching::always);
    void* pages = map(nullptr);
    ASSERT_NE(pages, MAP_FAILED);
    const std::uint64_t first = use(memory, pages, kBytes);
    if (memory.host_pages() == HostPages::unnoticed)
        GTEST_SKIP() << "not run: the hooks of UCX " << library->version().text()
                     << " do not work in this process";
    munmap(pages, kBytes);
    ASSERT_EQ(map(pages), pages);
    const std::uint64_t second = use(memory, pages, kBytes);
    EXPECT_NE(second, first);
    EXPECT_EQ(memory.counts().registered, 2u);
    EXPECT_EQ(memory.counts().invalidated, 1u);
    EXPECT_EQ(memory.counts().live, 1u);
    munmap(pages, kBytes);
}

TEST_F(UcxMemory, WhatTheAllocatorGivesBackIsNoticed) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "not run: the address sanitizer keeps freed memory";
#endif
    Memory memory(*library, rails, kLimits, Watching::always);
    void* pages = map(nullptr);
    ASSERT_NE(pages, MAP_FAILED);
    use(memory, pages, kBytes);
    if (memory.host_pages() == HostPages::unnoticed)
        GTEST_SKIP() << "not run: the hooks of UCX " << library->version().text()
                     << " do not work in this process";
    void* block = std::malloc(64 * kMiB);  // so much comes from mmap
    use(memory, block, 64 * kMiB);
    std::free(block);
    use(memory, pages, kBytes);
    EXPECT_EQ(memory.counts().registered, 2u);
    EXPECT_EQ(memory.counts().reused, 1u);
    EXPECT_EQ(memory.counts().invalidated, 1u);
    EXPECT_EQ(memory.counts().live, 1u);
    munmap(pages, kBytes);
}

TEST_F(UcxMemory, RailsOfTcpAloneGoByAddressWithoutAnyHook) {
    for (const Rail& rail : rails)
        if (!rail.only_tcp()) GTEST_SKIP() << "not run: this machine has a card";
    Memory memory(*library, rails, kLimits);
    void* pages = map(nullptr);
    const std::uint64_t first = use(memory, pages, kBytes);
    munmap(pages, kBytes);
    ASSERT_EQ(map(pages), pages);
    EXPECT_EQ(use(memory, pages, kBytes), first);
    EXPECT_EQ(memory.host_pages(), HostPages::any);
    munmap(pages, kBytes);
}

// Sites set UCX_TLS for programs that need UCX's shared memory; it makes no card of TCP.
TEST_F(UcxMemory, ARailOfTcpStaysOneBesideTransportsThatEndInsideTheNode) {
    for (const Rail& rail : rails)
        if (!rail.only_tcp()) GTEST_SKIP() << "not run: this machine has a card";
    const char* const given = std::getenv("UCX_TLS");
    const std::string before = given != nullptr ? given : "";
    setenv("UCX_TLS", "tcp,self,posix,sysv,cma", 1);
    Result<std::vector<Rail>> with = open_rails(*library, config);
    setenv("UCX_TLS", "self,posix", 1);
    Result<std::vector<Rail>> inside = open_rails(*library, config);
    given != nullptr ? setenv("UCX_TLS", before.c_str(), 1) : unsetenv("UCX_TLS");
    ASSERT_TRUE(with.ok()) << with.status().text();
    ASSERT_GT(with->front().resources().size(), rails.front().resources().size());
    EXPECT_TRUE(with->front().only_tcp());
    EXPECT_EQ(with->front().devices().size() + 1, rails.front().resources().size());
    ASSERT_TRUE(inside.ok()) << inside.status().text();
    EXPECT_TRUE(inside->front().devices().empty());
}

TEST_F(UcxMemory, AFullCacheEvicts) {
    Memory memory(*library, rails, {4, kGiB});
    std::vector<std::byte> buffer(64 * 4096);
    for (std::size_t i = 0; i < 64; ++i)
        use(memory, buffer.data() + i * 4096, 4096);
    EXPECT_EQ(memory.counts().registered, 64u);
    EXPECT_EQ(memory.counts().evicted, 60u);
    EXPECT_EQ(memory.counts().live, 4u);
}

TEST_F(UcxMemory, DeviceMemoryIsRefusedSoftlyWhereNoCardReachesIt) {
    Memory memory(*library, rails, kLimits);
    void* unreadable = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    Result<Region> region = memory.add(on_device(unreadable, kBytes, kBytes, 1));
    EXPECT_FALSE(region.ok());
    EXPECT_EQ(memory.counts().refused, 1u);
    EXPECT_EQ(memory.counts().live, 0u);
    munmap(unreadable, kBytes);
}

TEST_F(UcxMemory, OneDeviceAllocationAfterTheOtherIsRefused) {
    Memory memory(*library, rails, kLimits);
    void* pages = map(nullptr);
    ASSERT_NE(pages, MAP_FAILED);
    constexpr Bytes kAllocation = kBytes / 4;
    for (std::uint64_t each = 0; each < 4; ++each) {
        std::byte* const base = static_cast<std::byte*>(pages) + each * kAllocation;
        Result<Region> region = memory.add(on_device(base, kAllocation, 8, 1 + each));
        EXPECT_FALSE(region.ok());
    }
    EXPECT_EQ(memory.counts().refused, 4u);
    std::vector<std::byte> on_host(kBytes);
    use(memory, on_host.data(), kBytes);
    munmap(pages, kBytes);
}

// The driver frees and maps memory past UCX's hooks.
void unmap_unheard(void* address, Bytes bytes) {
    ASSERT_EQ(syscall(SYS_munmap, address, bytes), 0);
}

void note_range(ucm_event_type_t, ucm_event_t* event, void* ranges) {
    static_cast<std::vector<std::pair<void*, std::size_t>>*>(ranges)->emplace_back(
        event->vm_unmapped.address, event->vm_unmapped.size);
}

// UCX 1.15 and later end the process over host memory where it still knows device memory.
TEST_F(UcxMemory, UcxForgetsDeviceMemoryThatIsRegisteredNoMore) {
    const auto set = set_handler();
    const auto unset = unset_handler();
    ASSERT_TRUE(set != nullptr && unset != nullptr);
    Memory memory(*library, rails, kLimits);
    void* pages = map(nullptr);
    ASSERT_NE(pages, MAP_FAILED);
    std::vector<std::pair<void*, std::size_t>> heard;
    constexpr int kUnmapped = UCM_EVENT_VM_UNMAPPED | UCM_EVENT_FLAG_NO_INSTALL;
    ASSERT_EQ(set(kUnmapped, 0, &note_range, &heard), UCS_OK);
    Result<Region> region = memory.add(on_device(pages, kBytes, kBytes, 1));
    unset(kUnmapped, &note_range, &heard);
    EXPECT_FALSE(region.ok()) << "a card of this machine takes anything for device memory";
    EXPECT_EQ(std::ranges::count(heard, std::pair<void*, std::size_t>(pages, kBytes)), 2)
        << "before it is registered, and when it is no more";
    unmap_unheard(pages, kBytes);
    ASSERT_EQ(map(pages), pages);
    use(memory, pages, kBytes);
    munmap(pages, kBytes);
}

TEST_F(UcxTest, ARepeatedSinkRegistersOnceAndALatePutIsRefused) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    std::vector<std::byte> source(kMiB, std::byte{0x5a}), sink(kMiB);
    RemoteKey key;
    for (int i = 0; i < 5; ++i) {
        Result<Region> region = transport(1).register_memory(extent(sink));
        ASSERT_TRUE(region.ok()) << region.status().text();
        key = transport(1).key(*region);
        Completion done(ranks[0]->executor);
        transport(0).put(1, 0, source.data(), source.size(), {}, key, 0, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        transport(1).release_memory(*region);
    }
    EXPECT_EQ(sink, source);
    EXPECT_EQ(transport(1).stats().registrations.registered, 1u);
    EXPECT_EQ(transport(1).stats().registrations.reused, 4u);
    Completion late(ranks[0]->executor);
    transport(0).put(1, 0, source.data(), 1, {}, key, 0, late);
    ASSERT_TRUE(until([&] { return late.done(); }));
    EXPECT_FALSE(late.status().ok());
}

// UCX hooks brk and its like to hear of unmapped memory, and its hook of sbrk(0) asks the kernel.
void count_call(ucm_event_type_t, ucm_event_t*, void* calls) {
    ++*static_cast<int*>(calls);
}

TEST_F(UcxMemory, OfTheHeapIsKnownForHostMemoryWithoutTheHookedBreak) {
    const auto set = set_handler();
    const auto unset = unset_handler();
    ASSERT_TRUE(set != nullptr && unset != nullptr);
    int calls = 0;
    const Memory watching(*library, rails, kLimits, Watching::always);
    constexpr int kBreak = UCM_EVENT_SBRK | UCM_EVENT_FLAG_NO_INSTALL;
    ASSERT_EQ(set(kBreak, 0, &count_call, &calls), UCS_OK);
    const auto on_heap = std::make_unique<std::uint64_t>(7);
    device::HostMemory memory;
    const auto is_host = [&] {
        return memory.on_stack_or_heap(reinterpret_cast<std::uintptr_t>(on_heap.get()),
                                       sizeof(*on_heap));
    };
    const bool first = is_host();
    calls = 0;
    EXPECT_EQ(is_host(), first);
    EXPECT_EQ(calls, 0);
    sbrk(0);
    unset(kBreak, &count_call, &calls);
    if (calls == 0) GTEST_SKIP() << "not run: this UCX has not hooked sbrk";
}

}  // namespace
}  // namespace gantry::transport::ucx
