// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that needs no driver to be known for host memory, and memory that must not be mistaken for
// it.
#include "device/host_memory.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace gantry::device {
namespace {

std::uintptr_t value(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

int initialised_data[16] = {1};
int zeroed_data[16];
const int constant_data[16] = {1};

TEST(HostMemory, KnowsTheDataOfTheProgram) {
    HostMemory memory;
    EXPECT_TRUE(memory.in_program_data(value(initialised_data), sizeof(initialised_data)));
    EXPECT_TRUE(memory.in_program_data(value(zeroed_data), sizeof(zeroed_data)));
    EXPECT_TRUE(memory.in_program_data(value(constant_data), sizeof(constant_data)));
}

TEST(HostMemory, KnowsTheDataOfALibraryThatCameLater) {
    HostMemory memory;
    EXPECT_FALSE(memory.in_program_data(16, 1));
    void* library = dlopen("libm.so.6", RTLD_NOW);
    ASSERT_NE(library, nullptr);
    void* symbol = dlsym(library, "signgam");
    ASSERT_NE(symbol, nullptr);
    EXPECT_TRUE(memory.in_program_data(value(symbol), sizeof(int)));
    dlclose(library);
}

TEST(HostMemory, TakesNothingForProgramDataThatReachesBeyondIt) {
    HostMemory memory;
    EXPECT_FALSE(memory.in_program_data(value(zeroed_data), Bytes{1} << 40));
}

TEST(HostMemory, KnowsTheStackOfEachThreadOnlyAboveTheCaller) {
    HostMemory memory;
    int buffer[8] = {};
    EXPECT_TRUE(memory.on_stack_or_heap(value(buffer), sizeof(buffer)));
    std::thread other([&] {
        int theirs[8] = {};
        EXPECT_TRUE(memory.on_stack_or_heap(value(theirs), sizeof(theirs)));
    });
    other.join();
}

HostMemory* memory_of_fiber;
ucontext_t back_to_thread;
bool fiber_saw_host;
void* mapped_buffer;

void fiber() {
    fiber_saw_host = memory_of_fiber->on_stack_or_heap(value(mapped_buffer), 16);
    setcontext(&back_to_thread);
}

TEST(HostMemory, ClaimsNothingOnTheStackOfAFiber) {
    HostMemory memory;
    const std::size_t bytes = 256 * 1024;
    auto* area = static_cast<char*>(
        mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(area, MAP_FAILED);
    memory_of_fiber = &memory;
    mapped_buffer = area + bytes + 4096;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = area;
    context.uc_stack.ss_size = bytes;
    context.uc_link = nullptr;
    fiber_saw_host = true;
    makecontext(&context, fiber, 0);
    swapcontext(&back_to_thread, &context);
    EXPECT_FALSE(fiber_saw_host);
    munmap(area, 2 * bytes);
}

TEST(HostMemory, KnowsTheHeapUpToTheCurrentBreakOnly) {
    HostMemory memory;
    auto* end = static_cast<char*>(sbrk(8192));
    ASSERT_NE(end, reinterpret_cast<char*>(-1));
    EXPECT_TRUE(memory.on_stack_or_heap(value(end), 8192));
    EXPECT_FALSE(memory.on_stack_or_heap(value(end), 8193 + 4096));
    if (sbrk(0) == end + 8192) {
        ASSERT_NE(sbrk(-8192), reinterpret_cast<void*>(-1));
        EXPECT_FALSE(memory.on_stack_or_heap(value(end), 8192)) << "the heap has shrunk";
    }
}

TEST(HostMemory, LeavesMappedMemoryToTheDriver) {
    HostMemory memory;
    void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_FALSE(memory.on_stack_or_heap(value(mapped), 1));
    EXPECT_FALSE(memory.in_program_data(value(mapped), 1));
    munmap(mapped, 4096);
}

TEST(HostMemory, RemembersMoreThreadsThanItHasRoomFor) {
    HostMemory memory;
    for (int thread = 0; thread < 100; ++thread) {
        std::thread one([&] {
            int buffer[4] = {};
            EXPECT_TRUE(memory.on_stack_or_heap(value(buffer), sizeof(buffer)));
        });
        one.join();
    }
}

}  // namespace
}  // namespace gantry::device
