// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_memory.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

namespace gantry {
namespace {

// A copy of this process that does nothing, until it is ended.
class Sleeper {
  public:
    Sleeper() : process_(fork()) {
        if (process_ == 0)
            for (;;)
                pause();
    }
    ~Sleeper() { end(); }
    void end() {
        if (process_ <= 0) return;
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    int process() const { return process_; }

  private:
    pid_t process_;
};

TEST(ProcessMemory, PiecesOfBothSidesNeedNotAgree) {
    char from[] = "abcdefghij", to[11] = {};
    Sleeper other;
    iovec there[] = {{from, 3}, {from + 3, 0}, {from + 3, 7}}, here[] = {{to, 6}, {to + 6, 4}};
    if (access_process(ProcessAccess::read, other.process(), there, here) == EPERM)
        GTEST_SKIP() << "this process may not read another one's memory";
    EXPECT_STREQ(to, "abcdefghij");
    std::memset(from, 'x', 10);
    iovec back[] = {{from, 10}}, mine[] = {{from, 10}};
    EXPECT_EQ(access_process(ProcessAccess::write, other.process(), back, mine), 0);
    iovec again[] = {{from, 10}}, seen[] = {{to, 10}};
    EXPECT_EQ(access_process(ProcessAccess::read, other.process(), again, seen), 0);
    EXPECT_STREQ(to, "xxxxxxxxxx");
}

TEST(ProcessMemory, WhatIsNotThereIsSaid) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* const memory =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::memset(memory, 7, 2 * page);
    ASSERT_EQ(mprotect(static_cast<char*>(memory) + page, page, PROT_NONE), 0);
    std::vector<char> to(2 * page);
    Sleeper other;
    // The kernel moves the first page alone, and refuses the second.
    iovec there{memory, 2 * page}, here{to.data(), 2 * page};
    const int why = access_process(ProcessAccess::read, other.process(), {&there, 1}, {&here, 1});
    if (why == EPERM) GTEST_SKIP() << "this process may not read another one's memory";
    EXPECT_EQ(why, EFAULT);
    const int gone = other.process();
    other.end();
    iovec late{memory, 1}, mine{to.data(), 1};
    EXPECT_EQ(access_process(ProcessAccess::read, gone, {&late, 1}, {&mine, 1}), ESRCH);
    munmap(memory, 2 * page);
}

TEST(ProcessMemory, AProbeIsOfOneProcess) {
    Probe probe = own_probe();
    EXPECT_TRUE(reaches(probe));
    ++probe.number;
    EXPECT_FALSE(reaches(probe));
    EXPECT_FALSE(reaches(Probe{}));
}

}  // namespace
}  // namespace gantry
