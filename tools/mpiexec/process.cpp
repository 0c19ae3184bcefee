// SPDX-License-Identifier: BSD-3-Clause
#include "process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

extern char** environ;

namespace gantry::mpiexec {
namespace {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() {
        if (number_ >= 0) close(number_);
    }
    int get() const { return number_; }
    int release() { return std::exchange(number_, -1); }

  private:
    int number_ = -1;
};

struct Channel {
    Descriptor ours;
    Descriptor theirs;
};

enum class Flow { to_rank, from_rank, both };

bool open_channel(Channel& channel, Flow flow) {
    int ends[2];
    if (flow == Flow::both) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    } else if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    const bool ours_is_first = flow != Flow::to_rank;
    channel.ours = Descriptor(ends[ours_is_first ? 0 : 1]);
    channel.theirs = Descriptor(ends[ours_is_first ? 1 : 0]);
    if (flow != Flow::both) fcntl(channel.ours.get(), F_SETFL, O_NONBLOCK);
    return true;
}

// What the rank writes to: a channel to mpiexec, or a file.
bool open_output(Channel& channel, const OutputFile& file) {
    if (file.path.empty()) return open_channel(channel, Flow::from_rank);
    const int fresh = file.fresh ? O_TRUNC : 0;
    channel.theirs = Descriptor(
        open(file.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | fresh, 0666));
    return channel.theirs.get() >= 0;
}

// Variables of a launcher around us would make the rank talk to that one.
void forget_outer_launcher() {
    std::vector<std::string> names;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        if (text.starts_with("PMI_") || text.starts_with("PMIX_"))
            names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names)
        unsetenv(name.c_str());
}

void set(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
}

void set_variables(const Start& what, int pmi) {
    forget_outer_launcher();
    const std::string rank = std::to_string(what.rank);
    const std::string size = std::to_string(what.size);
    set("PMI_RANK", rank);
    set("PMI_SIZE", size);
    set("PMI_FD", std::to_string(pmi));
    if (what.spawned) set("PMI_SPAWNED", "1");
    set("MPI_LOCALRANKID", rank);
    set("MPI_LOCALNRANKS", size);
    set("LOCAL_RANK", rank);
    if (!what.gpus.empty()) set("CUDA_VISIBLE_DEVICES", what.gpus);
    for (const auto& [name, value] : *what.variables_for_all)
        set(name.c_str(), value);
    for (const auto& [name, value] : what.app->variables)
        set(name.c_str(), value);
}

void reset_signals() {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGTTIN, SIGTTOU})
        signal(number, SIG_DFL);
}

// The threads of the rank inherit it.
bool bind(const Processors& processors) {
    if (processors.empty()) return true;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int processor : processors)
        CPU_SET(processor, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

enum class Step : int { processors, folder, program };

struct Trouble {
    Step step;
    int error;
};

// Whether a program of that name is anywhere. execvp says "permission denied" as soon as one folder
// of PATH may not be searched, although the program is in none.
bool in_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    if (program.find('/') != std::string::npos || path == nullptr) return true;
    std::string_view rest = path;
    while (true) {
        const std::size_t end = rest.find(':');
        const std::string candidate = std::string(rest.substr(0, end)) + "/" + program;
        if (access(candidate.c_str(), F_OK) == 0) return true;
        if (end == std::string_view::npos) return false;
        rest.remove_prefix(end + 1);
    }
}

// The program in the first of these folders that has it; else its bare name.
std::string in_folders(std::string_view folders, const std::string& program) {
    while (!folders.empty() && program.find('/') == std::string::npos) {
        const std::size_t end = std::min(folders.find(':'), folders.size());
        const std::string candidate = std::string(folders.substr(0, end)) + "/" + program;
        if (access(candidate.c_str(), X_OK) == 0) return candidate;
        folders.remove_prefix(std::min(end + 1, folders.size()));
    }
    return program;
}

// The child, from fork to exec. `report` tells the parent what failed; exec closes it.
[[noreturn]] void become(const Start& what, const Channel& pmi, const Channel& input,
                         const Channel& output, const Channel& errors, pid_t launcher, int report) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(1);  // it died before the line above
    reset_signals();
    setrlimit(RLIMIT_NOFILE, &what.descriptors);
    if (what.input == Input::pipe) dup2(input.theirs.get(), STDIN_FILENO);
    if (what.input == Input::nothing) dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(output.theirs.get(), STDOUT_FILENO);
    dup2(errors.theirs.get(), STDERR_FILENO);
    fcntl(pmi.theirs.get(), F_SETFD, 0);
    set_variables(what, pmi.theirs.get());

    Trouble trouble{Step::processors, 0};
    const bool bound = bind(what.processors);
    if (bound) trouble.step = Step::folder;
    if (bound && (what.app->folder.empty() || chdir(what.app->folder.c_str()) == 0)) {
        std::vector<char*> arguments;
        for (const std::string& argument : what.app->command)
            arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        const std::string program =
            what.path.empty() ? what.app->command[0] : in_folders(what.path, what.app->command[0]);
        execvp(program.c_str(), arguments.data());
        trouble.step = Step::program;
    }
    trouble.error = errno;
    if (trouble.error == EACCES && !in_path(what.app->command[0])) trouble.error = ENOENT;
    [[maybe_unused]] const ssize_t written = write(report, &trouble, sizeof trouble);
    _exit(127);
}

std::string sentence(const Start& what, const Trouble& trouble) {
    const std::string& program = what.app->command[0];
    if (trouble.step == Step::processors)
        return fmt::format("cannot bind rank {} to processors {}: {}. --bind-to none does without",
                           what.rank, listed(what.processors), strerror(trouble.error));
    if (trouble.step == Step::folder)
        return fmt::format("cannot start rank {} in folder {}: {}", what.rank, what.app->folder,
                           strerror(trouble.error));
    std::string text =
        fmt::format("cannot start {} as rank {}: {}", program, what.rank, strerror(trouble.error));
    if (trouble.error == ENOENT && program.find('/') == std::string::npos)
        text += fmt::format(". It is in no folder of PATH; a program in the current folder is ./{}",
                            program);
    if (trouble.error == EACCES)
        text += ". Is it a program, with the permission to be executed (chmod +x)?";
    return text;
}

Started failed(std::string why) {
    return {Process{}, std::move(why)};
}

}  // namespace

Started start(const Start& what) {
    Channel pmi, input, output, errors, report;
    for (const auto& [channel, file] : {std::pair{&output, &what.output}, {&errors, &what.errors}})
        if (!open_output(*channel, *file) && !file->path.empty())
            return failed(fmt::format("cannot write the output of rank {} to {}: {}", what.rank,
                                      file->path, strerror(errno)));
    const bool opened = output.theirs.get() >= 0 && errors.theirs.get() >= 0 &&
                        open_channel(pmi, Flow::both) && open_channel(report, Flow::from_rank) &&
                        (what.input != Input::pipe || open_channel(input, Flow::to_rank));
    if (!opened)
        return failed(fmt::format(
            "cannot open the streams of rank {}: {}. `ulimit -n` limits how many are open",
            what.rank, strerror(errno)));
    const pid_t launcher = getpid();
    const pid_t pid = fork();
    if (pid < 0)
        return failed(
            fmt::format("cannot start rank {}: fork: {}. `ulimit -u` limits how many processes run",
                        what.rank, strerror(errno)));
    if (pid == 0) become(what, pmi, input, output, errors, launcher, report.theirs.get());

    setpgid(pid, pid);  // also here: the group must exist before anybody signals it
    report.theirs = Descriptor();
    fcntl(report.ours.get(), F_SETFL, 0);
    Trouble trouble{};
    ssize_t length = 0;
    do
        length = read(report.ours.get(), &trouble, sizeof trouble);
    while (length < 0 && errno == EINTR);
    if (length == sizeof trouble) {
        waitpid(pid, nullptr, 0);
        return failed(sentence(what, trouble));
    }
    Started started;
    started.process = {pid, pmi.ours.release(), input.ours.release(), output.ours.release(),
                       errors.ours.release()};
    return started;
}

}  // namespace gantry::mpiexec
