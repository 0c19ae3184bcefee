// SPDX-License-Identifier: BSD-3-Clause
#include "base/segment.hpp"

#include "base/process_state.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

namespace gantry {
namespace {

std::size_t entries_of_shared_folder() {
    std::size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
        ++entries;
    return entries;
}

class SegmentOn : public testing::TestWithParam<Backing> {};
INSTANTIATE_TEST_SUITE_P(Backings, SegmentOn,
                         testing::Values(Backing::memory_file, Backing::shared_folder));

TEST_P(SegmentOn, IsSharedByWhoOpensItAndLeavesNothingBehind) {
    const std::size_t before = entries_of_shared_folder();
    {
        const Segment segment = std::move(Segment::create("test", 8192, GetParam()).value());
        ASSERT_TRUE(segment.reserve(0, 8192).ok());
        const SegmentMapping ours = std::move(segment.map(0, 8192).value());
        const Segment same = std::move(Segment::open("test", segment.name()).value());
        const SegmentMapping theirs = std::move(same.map(4096, 4096).value());
        ours.address()[5000] = std::byte{42};
        EXPECT_EQ(theirs.address()[5000 - 4096], std::byte{42});
        EXPECT_EQ(entries_of_shared_folder(), before);
    }
    EXPECT_EQ(entries_of_shared_folder(), before);
}

TEST_P(SegmentOn, AReservationThatTheNodeCannotHoldIsAnError) {
    constexpr Bytes kTooMuch = Bytes{1} << 44;  // 16 TiB
    const Result<Segment> segment = Segment::create("test", kTooMuch, GetParam());
    ASSERT_TRUE(segment.ok()) << segment.status().text();
    const Status failed = segment.value().reserve(0, kTooMuch);
    EXPECT_EQ(failed.error_class(), MPI_ERR_NO_MEM);
    EXPECT_NE(std::string(failed.text()).find("full"), std::string::npos) << failed.text();
}

TEST(Segment, MapsTwiceInARow) {
    const Segment segment = std::move(Segment::create("test", 4096).value());
    const SegmentMapping both = std::move(segment.map_twice(0, 4096).value());
    both.address()[4096 + 7] = std::byte{9};
    EXPECT_EQ(both.address()[7], std::byte{9});
}

TEST(Segment, IsNotInheritedByPrograms) {
    const Segment segment = std::move(Segment::create("test", 4096).value());
    EXPECT_NE(fcntl(segment.name().descriptor, F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Segment, OpeningAnotherThingThanNamedIsAnError) {
    const Segment segment = std::move(Segment::create("test", 4096).value());
    SegmentName name = segment.name();
    name.inode += 1;
    const Result<Segment> opened = Segment::open("test", name);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(std::string(opened.status().text()).find("namespace"), std::string::npos);
}

TEST(Segment, ItsMakerIsAliveUntilItEnds) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const Segment segment = std::move(Segment::create("test", 4096).value());
        const SegmentName name = segment.name();
        const std::uint64_t start = own_start_time();
        if (write(ends[1], &name, sizeof name) < 0 || write(ends[1], &start, sizeof start) < 0)
            _exit(1);
        pause();
        _exit(0);
    }
    SegmentName name;
    std::uint64_t start = 0;
    ASSERT_EQ(read(ends[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
    ASSERT_EQ(read(ends[0], &start, sizeof start), static_cast<ssize_t>(sizeof start));
    EXPECT_TRUE(maker_is_alive(name, start));
    kill(child, SIGKILL);
    siginfo_t how;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &how, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(maker_is_alive(name, start)) << "a zombie is not alive";
    EXPECT_EQ(Segment::open("test", name).status().error_class(), MPI_ERR_PROC_ABORTED);
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(maker_is_alive(name, start));
    EXPECT_EQ(Segment::open("test", name).status().error_class(), MPI_ERR_PROC_ABORTED);
    close(ends[0]);
    close(ends[1]);
}

// A process that is killed loses its threads one by one. With the first one its descriptors are out of reach,
// though the process is still there: whoever opens one hears of a death.
TEST(Segment, ThatCannotBeOpenedSinceItsMakerEndsIsOfADeath) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        const Segment segment = std::move(Segment::create("test", 4096).value());
        const SegmentName name = segment.name();
        std::thread([] { pause(); }).detach();
        if (write(ends[1], &name, sizeof name) < 0) _exit(1);
        syscall(SYS_exit, 0);  // this thread alone
    }
    SegmentName name;
    ASSERT_EQ(read(ends[0], &name, sizeof name), static_cast<ssize_t>(sizeof name));
    while (!main_thread_has_ended(child))
        sched_yield();
    EXPECT_FALSE(process_has_ended(child));
    EXPECT_EQ(Segment::open("test", name).status().error_class(), MPI_ERR_PROC_ABORTED);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(process_has_ended(child));
    close(ends[0]);
    close(ends[1]);
}

TEST(Segment, AMakerThatClosedItsDescriptorsStillIsAlive) {
    Segment segment = std::move(Segment::create("test", 4096).value());
    const SegmentName name = segment.name();
    segment = Segment();
    EXPECT_TRUE(maker_is_alive(name, own_start_time()));
}

}  // namespace
}  // namespace gantry
