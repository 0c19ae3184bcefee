// SPDX-License-Identifier: BSD-3-Clause
#include "job/guest.hpp"

#include "job/pmi.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

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

[[noreturn]] void become_mpiexec(int socket, char** arguments) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    fcntl(socket, F_SETFD, 0);
    execv(arguments[0], arguments);
    _exit(127);
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
    // It shares this process's memory until it becomes the other program: handlers of forks, which
    // forget the job, do not run.
    const pid_t process = vfork();
    if (process == 0) become_mpiexec(ends[1], arguments);
    const int error = errno;
    close(ends[1]);
    if (process < 0) return cannot("vfork", error);
    Result<std::unique_ptr<Job>> job = PmiJob::start(std::move(wire), 0, 1);
    if (!job.ok()) return failure(MPI_ERR_SPAWN, "{}", job.status().text());
    return job;
}

}  // namespace gantry::job
