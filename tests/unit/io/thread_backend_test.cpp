// SPDX-License-Identifier: BSD-3-Clause
//
// The threads of a backend (io/thread_backend.hpp): all that is given ends, and is told of by the
// engine's thread alone.
#include "io/thread_backend.hpp"

#include "base/scope.hpp"
#include "io/fake/faulty_system.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace gantry::io {
namespace {

struct RealClock final : Clock {
    Nanoseconds now() const override { return 0; }
};

void drive(Executor& executor, Backend& backend) {
    while (!backend.idle() || executor.has_ready()) {
        backend.progress();
        executor.run_ready();
    }
}

Task<Status> write_one(Executor& executor, Backend& backend, std::byte* memory,
                       std::int64_t offset) {
    Transfer transfer;
    transfer.direction = Direction::write;
    transfer.segments.push_back({offset, memory, 10});
    Status ended = co_await backend.run(executor, transfer, "f");
    co_return ended;
}

TEST(ThreadBackend, EverythingThatIsGivenEnds) {
    RealClock clock;
    Executor executor(clock);
    FaultySystem system(1);
    ThreadBackend backend(system, 3);
    std::vector<std::byte> memory(10'000);
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory[i] = static_cast<std::byte>(i * 3 + i / 256);
    Scope all(executor);
    for (std::int64_t i = 0; i < 1000; ++i)
        all.spawn(write_one(executor, backend, memory.data() + i * 10, i * 10));
    EXPECT_EQ(all.running(), 1000);
    drive(executor, backend);
    EXPECT_EQ(all.running(), 0);
    EXPECT_EQ(system.file, memory);
}

TEST(ThreadBackend, OtherCallsTellWhatTheyReturn) {
    RealClock clock;
    Executor executor(clock);
    FaultySystem system;
    system.faulty = FaultySystem::Call::sync;
    system.at = 1;
    system.error = EIO;
    ThreadBackend backend(system, 2);
    std::int64_t returned = 0;
    Task<Status> asked = backend.call(
        executor, [](System& of) { return static_cast<std::int64_t>(of.sync(3)); }, &returned);
    asked.start();
    drive(executor, backend);
    ASSERT_TRUE(asked.done());
    EXPECT_EQ(returned, -EIO);
}

TEST(ThreadBackend, WithoutWorkItHasNoThreads) {
    FaultySystem system;
    ThreadBackend backend(system, 2);
    EXPECT_TRUE(backend.idle());
    EXPECT_EQ(backend.progress(), 0);
}

}  // namespace
}  // namespace gantry::io
