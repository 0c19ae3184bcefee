// SPDX-License-Identifier: BSD-3-Clause
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace gantry::bench {
namespace {

int start(const Command& command, int output) {
    const pid_t child = fork();
    if (child != 0) return child;
    for (const auto& [name, value] : command.environment)
        setenv(name.c_str(), value.c_str(), 1);
    const int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(output >= 0 ? output : nothing, STDOUT_FILENO);
    dup2(output >= 0 ? output : nothing, STDERR_FILENO);
    std::vector<char*> words;
    for (const std::string& word : command.words)
        words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    std::perror(words[0]);
    _exit(127);
}

int code_of(int status) {
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Ended run(const Command& command, int seconds) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {127, "no pipe for a child"};
    const int child = start(command, ends[1]);
    close(ends[1]);
    if (child < 0) return {127, "fork failed"};
    Ended ended;
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(seconds);
    int warnings = 0;
    char piece[4096];
    while (true) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd ready{ends[0], POLLIN, 0};
        const int wait = warnings > 0 ? 5000 : static_cast<int>(left > 0 ? left : 0);
        if (poll(&ready, 1, wait) == 0) {
            kill(child, warnings == 0 ? SIGTERM : SIGKILL);
            if (++warnings == 1)
                ended.output += "ended after " + std::to_string(seconds) + " s without an answer\n";
            if (warnings > 2) break;
            continue;
        }
        const ssize_t got = read(ends[0], piece, sizeof piece);
        if (got <= 0) break;
        ended.output.append(piece, static_cast<std::size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    ended.status = code_of(status);
    return ended;
}

Background::Background(const Command& command) : pid_(start(command, -1)) {}

Background::~Background() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
}

}  // namespace gantry::bench
