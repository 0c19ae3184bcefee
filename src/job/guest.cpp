// SPDX-License-Identifier: BSD-3-Clause
#include "job/guest.hpp"

#include "job/pmi.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

extern char** environ;

namespace gantry::job {
namespace {

// PREFIX/bin/mpiexec, of the library in PREFIX/lib or a folder of it; empty: there is none.
std::string own_mpiexec() {
    Dl_info about{};
    if (dladdr(reinterpret_cast<void*>(&become_guest), &about) == 0 || about.dli_fname == nullptr)
        return {};
    std::string folder = about.dli_fname;
    constexpr int kFoldersUp = 4;
    for (int up = 0; up < kFoldersUp; ++up) {
        const std::size_t slash = folder.rfind('/');
        if (slash == std::string::npos) return {};
        folder.resize(slash);
        const std::string candidate = folder + "/bin/mpiexec";
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
}

Status cannot(const char* step, int error) {
    return failure(MPI_ERR_SPAWN, "starting an mpiexec for the processes to spawn: {}: {}", step,
                   std::strerror(error));
}

}  // namespace

Result<std::unique_ptr<Job>> become_guest() {
    const std::string program = own_mpiexec();
    if (program.empty())
        return failure(MPI_ERR_SPAWN,
                       "this program was started without a launcher, and Gantry's mpiexec, which "
                       "would start the processes to spawn, is not beside the library. Start the "
                       "program by mpiexec -n 1");
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return cannot("a socket", errno);
    PmiWire wire(ends[0]);
    std::string name = program, option = "--serve", socket = std::to_string(ends[1]);
    char* arguments[] = {name.data(), option.data(), socket.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    // Onto itself: from there on it is inherited.
    posix_spawn_file_actions_adddup2(&actions, ends[1], ends[1]);
    pid_t process = 0;
    const int error = posix_spawn(&process, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error != 0) return cannot(program.c_str(), error);
    Result<std::unique_ptr<Job>> job = PmiJob::start(std::move(wire), 0, 1);
    if (!job.ok()) return failure(MPI_ERR_SPAWN, "{}", job.status().text());
    return job;
}

}  // namespace gantry::job
