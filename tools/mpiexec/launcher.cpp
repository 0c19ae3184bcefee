// SPDX-License-Identifier: BSD-3-Clause
#include "launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gantry::mpiexec {
namespace {

using namespace std::chrono_literals;
using job::Membership;

constexpr auto kGrace = 2s;       // between asking a rank to end and killing it
constexpr auto kDying = 1s;       // how long a process may take to end after it began to
constexpr auto kLastOutput = 1s;  // for output that is still under way when all ranks have ended
constexpr int kPromptMilliseconds =
    100;  // an unfinished line of rank 0 that stays so long is a prompt
constexpr int kTimeoutCode = 124;

constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kPassedOnSignals = {SIGUSR1, SIGUSR2, SIGWINCH};

template <std::size_t N>
bool contains(const std::array<int, N>& numbers, int number) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

std::string signal_name(int number) {
    const char* short_name = sigabbrev_np(number);
    return fmt::format("signal {} (SIG{}, {})", number, short_name != nullptr ? short_name : "?",
                       strsignal(number));
}

// Whether the process has begun to end but cannot be waited for yet: PF_EXITING among the flags in
// /proc/<pid>/stat.
bool is_dying(pid_t pid) {
    std::FILE* file = std::fopen(fmt::format("/proc/{}/stat", pid).c_str(), "re");
    if (file == nullptr) return false;
    char text[1024];
    text[std::fread(text, 1, sizeof text - 1, file)] = '\0';
    std::fclose(file);
    // "pid (name) state parent group session terminal foreground flags ..."; the name may hold
    // anything.
    const char* behind_name = std::strrchr(text, ')');
    unsigned flags = 0;
    if (behind_name == nullptr ||
        std::sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
        return false;
    constexpr unsigned kExiting = 4;
    return (flags & kExiting) != 0;
}

// What the user can do about a rank that this signal killed.
std::string advice(int number) {
    switch (number) {
        case SIGKILL:
            return " If nobody killed it, the system may have run out of memory: see `dmesg`, or "
                   "run fewer ranks.";
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE:
        case SIGABRT:
            return " To see where: mpiexec -n N --label gdb -batch -ex run -ex backtrace --args "
                   "PROGRAM.";
        default: return "";
    }
}

}  // namespace

Launcher::Launcher(Options options, Binding binding)
    : options_(std::move(options)),
      binding_(std::move(binding)),
      size_(options_.total_ranks()),
      standard_output_(STDOUT_FILENO),
      standard_error_(STDERR_FILENO),
      pmi_(size_, fmt::format("mpiexec-{}-{}", getpid(), Clock::now().time_since_epoch().count()),
           fmt::format("(vector,(0,1,{}))", size_)) {
    getrlimit(RLIMIT_NOFILE, &descriptors_);
    rlimit raised = descriptors_;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
    if (options_.timeout_seconds > 0)
        deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double>(options_.timeout_seconds));
}

Launcher::~Launcher() {
    if (signals_ >= 0) close(signals_);
}

int Launcher::run() {
    open_signals();
    if (!start_ranks()) {
        signal_ranks(SIGKILL);
        for (const Rank& rank : ranks_)
            waitpid(rank.process.pid, nullptr, 0);
        standard_error_.flush();
        return *exit_code_;
    }
    while (still_running() > 0)
        turn();
    finish_output();
    for (const Rank& rank : ranks_)
        waitpid(rank.process.pid, nullptr, 0);
    return exit_code_.value_or(0);
}

void Launcher::open_signals() {
    sigset_t handled;
    sigemptyset(&handled);
    for (int number : kEndingSignals)
        sigaddset(&handled, number);
    for (int number : kPassedOnSignals)
        sigaddset(&handled, number);
    sigaddset(&handled, SIGCHLD);
    sigaddset(&handled, SIGTSTP);
    sigprocmask(SIG_BLOCK, &handled, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool Launcher::start_ranks() {
    // A rank is no member of the terminal's foreground group and may not read it: mpiexec does, and
    // passes on what was typed.
    forward_terminal_ = isatty(STDIN_FILENO) == 1;
    for (std::size_t number = 0; number < options_.apps.size(); ++number) {
        const App& app = options_.apps[number];
        for (int i = 0; i < app.ranks; ++i) {
            const int rank = static_cast<int>(ranks_.size());
            Start what{&app, &options_.variables, rank, size_, Input::nothing, descriptors_, {}};
            if (!binding_.ranks.empty())
                what.processors = binding_.ranks[static_cast<std::size_t>(rank)];
            if (rank == 0) what.input = forward_terminal_ ? Input::pipe : Input::inherited;
            Started started = start(what);
            if (!started.failure.empty()) {
                say(started.failure);
                exit_code_ = 127;
                return false;
            }
            guard_.watch(started.process.pid);
            pmi_.add_rank(rank, started.process.pmi, static_cast<int>(number));
            const std::string prefix = options_.label ? fmt::format("[{}] ", rank) : "";
            forwarders_.emplace_back(started.process.output, standard_output_, prefix);
            forwarders_.emplace_back(started.process.errors, standard_error_, prefix);
            ranks_.push_back({started.process, &app, false, false});
        }
    }
    return true;
}

// --- the loop ------------------------------------------------------------------------------------

void Launcher::turn() {
    watch_everything();
    const int ready = poll(polled_.data(), polled_.size(), milliseconds_to_next_deadline());
    if (ready == 0 && !options_.label)
        for (std::size_t i = 0; i < std::min<std::size_t>(2, forwarders_.size()); ++i)
            if (forwarders_[i].has_partial_line()) forwarders_[i].flush_partial_line();
    // PMI before signals: what a rank said before it ended counts before its end.
    for (std::size_t i = 0; i < watched_.size(); ++i)
        if (polled_[i].revents != 0 && watched_[i].source != Source::signals) handle(watched_[i]);
    if (polled_[0].revents != 0) read_signals();
    check_deadlines();
}

void Launcher::watch(int descriptor, short events, Source source, std::size_t index) {
    polled_.push_back({descriptor, events, 0});
    watched_.push_back({source, index});
}

void Launcher::watch_everything() {
    polled_.clear();
    watched_.clear();
    watch(signals_, POLLIN, Source::signals, 0);
    const bool in_foreground = forward_terminal_ && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (in_foreground && typed_.empty() && ranks_[0].process.input >= 0)
        watch(STDIN_FILENO, POLLIN, Source::input, 0);
    if (!typed_.empty()) watch(ranks_[0].process.input, POLLOUT, Source::input, 1);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (const int socket = pmi_.socket(static_cast<int>(i)); socket >= 0)
            watch(socket, POLLIN, Source::pmi, i);
    for (std::size_t i = 0; i < forwarders_.size(); ++i)
        if (forwarders_[i].is_open() && !forwarders_[i].sink().is_full())
            watch(forwarders_[i].source(), POLLIN, Source::forwarder, i);
    if (standard_output_.wants_to_write()) watch(STDOUT_FILENO, POLLOUT, Source::sink, 0);
    if (standard_error_.wants_to_write()) watch(STDERR_FILENO, POLLOUT, Source::sink, 1);
}

int Launcher::milliseconds_to_next_deadline() const {
    int wait = -1;
    const auto until = [&wait](Clock::time_point when) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - Clock::now()).count();
        const int bounded = static_cast<int>(std::clamp<long>(left, 0, 1000000));
        wait = wait < 0 ? bounded : std::min(wait, bounded);
    };
    if (deadline_) until(*deadline_);
    if (kill_deadline_) until(*kill_deadline_);
    if (abort_deadline_) until(*abort_deadline_);
    const bool prompt = !options_.label && !forwarders_.empty() &&
                        (forwarders_[0].has_partial_line() || forwarders_[1].has_partial_line());
    if (prompt) until(Clock::now() + std::chrono::milliseconds(kPromptMilliseconds));
    // A job that was stopped and continued in the background may read the terminal again later.
    if (forward_terminal_) until(Clock::now() + 1s);
    return wait;
}

void Launcher::handle(const Watched& watched) {
    switch (watched.source) {
        case Source::signals: break;
        case Source::input: pump_input(); break;
        case Source::pmi: look_at_pmi(static_cast<int>(watched.index)); break;
        case Source::forwarder: {
            Forwarder& forwarder = forwarders_[watched.index];
            // When nobody reads our output the ranks shall notice as if they wrote there themselves
            // (SIGPIPE).
            if (forwarder.sink().is_broken())
                forwarder.close_source();
            else
                forwarder.read_some();
            break;
        }
        case Source::sink:
            (watched.index == 0 ? standard_output_ : standard_error_).write_some();
            break;
    }
}

void Launcher::pump_input() {
    int& rank_input = ranks_[0].process.input;
    if (typed_.empty()) {
        char buffer[4096];
        const ssize_t length = read(STDIN_FILENO, buffer, sizeof buffer);
        if (length < 0 && (errno == EINTR || errno == EAGAIN)) return;
        if (length > 0)
            typed_.assign(buffer, static_cast<std::size_t>(length));
        else
            close(std::exchange(rank_input, -1));
        return;
    }
    const ssize_t length = write(rank_input, typed_.data(), typed_.size());
    if (length >= 0) {
        typed_.erase(0, static_cast<std::size_t>(length));
    } else if (errno != EAGAIN && errno != EINTR) {
        typed_.clear();
        close(std::exchange(rank_input, -1));
    }
}

// --- signals -------------------------------------------------------------------------------------

void Launcher::read_signals() {
    signalfd_siginfo arrived;
    while (read(signals_, &arrived, sizeof arrived) == sizeof arrived)
        handle_signal(static_cast<int>(arrived.ssi_signo));
}

void Launcher::handle_signal(int number) {
    if (number == SIGCHLD) {
        collect_ended();
    } else if (number == SIGTSTP) {
        stop_and_continue();
    } else if (contains(kPassedOnSignals, number)) {
        signal_ranks(number);
    } else if (phase_ == Phase::running) {
        end_job(128 + number, fmt::format("the job is ended by {}", signal_name(number)), number);
    } else {  // asked twice
        phase_ = Phase::killing;
        signal_ranks(SIGKILL);
    }
}

void Launcher::stop_and_continue() {
    signal_ranks(SIGSTOP);
    raise(SIGSTOP);
    signal_ranks(SIGCONT);
}

void Launcher::signal_ranks(int number) {
    for (const Rank& rank : ranks_) {
        kill(-rank.process.pid, number);
        // A stopped process acts on nothing but SIGKILL until it is continued.
        if (contains(kEndingSignals, number)) kill(-rank.process.pid, SIGCONT);
    }
}

// --- the life of the ranks -----------------------------------------------------------------------

void Launcher::collect_ended() {
    std::vector<std::pair<int, siginfo_t>> ended;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (ranks_[i].ended) continue;
        siginfo_t how{};
        const int error = waitid(P_PID, static_cast<id_t>(ranks_[i].process.pid), &how,
                                 WEXITED | WNOHANG | WNOWAIT);
        if (error == 0 && how.si_pid != 0) ended.emplace_back(static_cast<int>(i), how);
    }
    // Of several at once, one that was killed is the likelier reason for the others' end.
    std::stable_partition(ended.begin(), ended.end(),
                          [](const auto& one) { return one.second.si_code != CLD_EXITED; });
    for (const auto& [rank, how] : ended)
        rank_ended(rank, how);
    consider_abort();
}

void Launcher::rank_ended(int rank, const siginfo_t& how) {
    Rank& ended = ranks_[static_cast<std::size_t>(rank)];
    look_at_pmi(rank);
    ended.ended = true;
    if (phase_ != Phase::running) return;  // we asked for it
    const bool finalized = pmi_.membership(rank) == Membership::finalized;
    if (how.si_code != CLD_EXITED) {
        const int code = 128 + how.si_status;
        const std::string why =
            fmt::format("{} was killed by {}{}.{}", name(rank), signal_name(how.si_status),
                        finalized ? "" : "; the job is ended", advice(how.si_status));
        if (!finalized) return end_job(code, why);
        say(why);
        if (!exit_code_) exit_code_ = code;
        return;
    }
    if (how.si_status != 0 && !exit_code_) exit_code_ = how.si_status;
    ended.left_without_finalize = !finalized;
    check_membership();
}

// A rank that has ended without leaving MPI never comes to the others' next fence or message: they
// would wait for ever.
void Launcher::check_membership() {
    if (phase_ != Phase::running) return;
    std::optional<int> left;
    bool others_inside = false;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        const Membership membership = pmi_.membership(static_cast<int>(i));
        if (ranks_[i].left_without_finalize && !left) left = static_cast<int>(i);
        // A member that left decides about itself, too: its exit code must not look like success.
        others_inside = others_inside || membership == Membership::inside;
    }
    if (!left || !others_inside) return;
    const bool was_inside = pmi_.membership(*left) == Membership::inside;
    const int code = exit_code_.value_or(1);
    end_job(code,
            fmt::format("{} exited with code {} {}; the job is ended. Every rank must call "
                        "{} before it exits; --label shows what it printed "
                        "last.",
                        name(*left), exit_code_.value_or(0),
                        was_inside ? "without leaving MPI" : "without MPI_Init",
                        was_inside ? "MPI_Finalize, and MPI_Session_finalize for each session,"
                                   : "MPI_Init and MPI_Finalize"));
}

void Launcher::look_at_pmi(int rank) {
    pmi_.serve(rank);
    if (!pmi_.offence().empty()) return end_job(1, pmi_.offence() + "; the job is ended.");
    if (pmi_.abort_call()) return consider_abort();
    check_membership();
}

// Often a rank aborts because another one died: then that death, which the system may not have
// reported yet, is the reason.
void Launcher::consider_abort() {
    if (phase_ != Phase::running || !pmi_.abort_call()) return;
    const auto now = Clock::now();
    if (!abort_deadline_) abort_deadline_ = now + kDying;
    const bool somebody_dies = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
        return !rank.ended && is_dying(rank.process.pid);
    });
    if (somebody_dies && now < *abort_deadline_) return;
    const auto& [who, code, reason] = *pmi_.abort_call();
    // A code that the shell would show as success is none.
    exit_code_ = (code & 255) != 0 ? code & 255 : 1;
    end_job(*exit_code_, fmt::format("{} ended the job with code {}: {}.", name(who), code,
                                     reason.empty() ? "it called MPI_Abort" : reason));
}

void Launcher::check_deadlines() {
    const auto now = Clock::now();
    consider_abort();
    if (phase_ == Phase::running && deadline_ && now >= *deadline_)
        end_job(kTimeoutCode, fmt::format("the job ran longer than --timeout {} s and is ended.",
                                          options_.timeout_seconds));
    if (phase_ == Phase::ending && now >= *kill_deadline_) {
        phase_ = Phase::killing;
        kill_deadline_.reset();
        signal_ranks(SIGKILL);
    }
}

void Launcher::end_job(int exit_code, const std::string& why, int signal_number) {
    if (phase_ != Phase::running) return;
    phase_ = Phase::ending;
    deadline_.reset();
    abort_deadline_.reset();
    kill_deadline_ = Clock::now() + kGrace;
    if (!exit_code_) exit_code_ = exit_code;
    say(why);
    signal_ranks(signal_number);
}

int Launcher::still_running() const {
    return static_cast<int>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; }));
}

std::string Launcher::name(int rank) const {
    const Rank& named = ranks_[static_cast<std::size_t>(rank)];
    return fmt::format("rank {} of {} ({}, process {})", rank, size_, named.app->command[0],
                       named.process.pid);
}

void Launcher::say(const std::string& sentence) {
    standard_error_.add(fmt::format("mpiexec: {}\n", sentence));
}

// All ranks have ended: what they started ends with them, then what they wrote comes out.
void Launcher::finish_output() {
    signal_ranks(SIGKILL);
    const auto last_moment = Clock::now() + kLastOutput;
    while (Clock::now() < last_moment &&
           std::any_of(forwarders_.begin(), forwarders_.end(),
                       [](const Forwarder& f) { return f.is_open(); })) {
        polled_.clear();
        watched_.clear();
        for (std::size_t i = 0; i < forwarders_.size(); ++i)
            if (forwarders_[i].is_open() && !forwarders_[i].sink().is_full())
                watch(forwarders_[i].source(), POLLIN, Source::forwarder, i);
        if (standard_output_.wants_to_write()) watch(STDOUT_FILENO, POLLOUT, Source::sink, 0);
        if (standard_error_.wants_to_write()) watch(STDERR_FILENO, POLLOUT, Source::sink, 1);
        const auto left =
            std::chrono::ceil<std::chrono::milliseconds>(last_moment - Clock::now()).count();
        poll(polled_.data(), polled_.size(), static_cast<int>(std::max<long>(left, 0)));
        for (std::size_t i = 0; i < watched_.size(); ++i)
            if (polled_[i].revents != 0) handle(watched_[i]);
    }
    standard_output_.flush();
    standard_error_.flush();
}

}  // namespace gantry::mpiexec
