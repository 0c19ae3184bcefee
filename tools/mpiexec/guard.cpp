// SPDX-License-Identifier: BSD-3-Clause
#include "guard.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace gantry::mpiexec {
namespace {

constexpr pid_t kLeave = 0;

[[noreturn]] void stand_guard(int pipe) {
    setsid();  // Ctrl-C is for mpiexec
    // Nobody may wait for the end of a stream because the guard has it open.
    for (int descriptor = 0; descriptor < 3; ++descriptor)
        close(descriptor);
    std::vector<pid_t> groups;
    pid_t group = kLeave;
    while (read(pipe, &group, sizeof group) == sizeof group) {
        if (group == kLeave) _exit(0);
        if (group > 0)
            groups.push_back(group);
        else
            std::erase(groups, -group);
    }
    for (pid_t left : groups)
        kill(-left, SIGKILL);
    _exit(1);
}

}  // namespace

Guard::Guard() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;  // without a guard only grandchildren can be left behind
    process_ = fork();
    if (process_ == 0) {
        close(ends[1]);
        stand_guard(ends[0]);
    }
    close(ends[0]);
    pipe_ = ends[1];
}

Guard::~Guard() {
    if (pipe_ < 0) return;
    watch(kLeave);
    close(pipe_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
}

void Guard::forget(pid_t group) {
    watch(-group);
}

void Guard::watch(pid_t group) {
    if (pipe_ < 0) return;
    [[maybe_unused]] const ssize_t written = write(pipe_, &group, sizeof group);
}

}  // namespace gantry::mpiexec
