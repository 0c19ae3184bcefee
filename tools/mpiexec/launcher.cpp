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
#include <set>

namespace gantry::mpiexec {
namespace {

using namespace std::chrono_literals;

constexpr auto kLastOutput = 1s;  // for output that is still under way when all ranks have ended
constexpr int kPromptMilliseconds =
    100;  // an unfinished line of who reads the input that stays so long is a prompt

constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
constexpr std::array kPassedOnSignals = {SIGUSR1, SIGUSR2, SIGWINCH};

template <std::size_t N>
bool contains(const std::array<int, N>& numbers, int number) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

}  // namespace

Launcher::Job::Job(std::string name, std::vector<App> its_apps, int its_size)
    : apps(std::move(its_apps)),
      size(its_size),
      pmi(size, std::move(name), fmt::format("(vector,(0,1,{}))", size)) {}

Launcher::Launcher(Options options, Binding binding, GpuBinding gpus)
    : options_(std::move(options)),
      binding_(std::move(binding)),
      gpus_(std::move(gpus)),
      standard_output_(STDOUT_FILENO),
      standard_error_(STDERR_FILENO),
      name_(fmt::format("mpiexec-{}-{}", getpid(), Clock::now().time_since_epoch().count())) {
    const bool serves = options_.serve >= 0;
    jobs_.emplace_back(name_, options_.apps, serves ? 1 : options_.total_ranks());
    jobs_.back().pmi.keep_names(names_);
    jobs_.back().pmi.take_spawns();
    if (options_.keep_going) jobs_.back().pmi.offer_deaths();
    if (serves) jobs_.back().pmi.add_rank(0, options_.serve, 0);
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
        bury(jobs_.front());
        standard_error_.flush();
        return *exit_code_;
    }
    while (still_running() > 0 || guest_is_here())
        turn();
    finish_output();
    check_sinks();
    standard_error_.flush();
    for (Job& job : jobs_)
        bury(job);
    return exit_code_.value_or(code_of_the_lost());
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
    forward_terminal_ = options_.input_rank >= 0 && isatty(STDIN_FILENO) == 1;
    Job& job = jobs_.front();
    std::set<std::string> files;
    const auto file = [&](const std::string& pattern, int rank, std::size_t number) {
        const std::string path = file_of_pattern(pattern, rank, number);
        return OutputFile{path, !path.empty() && files.insert(path).second};
    };
    for (std::size_t number = 0; number < job.apps.size(); ++number) {
        const App& app = job.apps[number];
        for (int i = 0; i < app.ranks; ++i) {
            const int rank = static_cast<int>(ranks_.size());
            Start what{&app, &options_.variables, rank, job.size, Input::nothing, descriptors_, {}};
            what.output = file(options_.output_pattern, rank, number);
            what.errors = file(options_.error_pattern, rank, number);
            if (!binding_.ranks.empty())
                what.processors = binding_.ranks[static_cast<std::size_t>(rank)];
            if (!gpus_.ranks.empty())
                what.gpus = uuids_of(gpus_.ranks[static_cast<std::size_t>(rank)]);
            if (rank == options_.input_rank)
                what.input = forward_terminal_ ? Input::pipe : Input::inherited;
            Started started = start(what);
            if (!started.failure.empty()) {
                say(started.failure);
                exit_code_ = 127;
                return false;
            }
            job.pmi.add_rank(rank, started.process.pmi, static_cast<int>(number));
            adopt(started, app, 0, rank, fmt::format("[{}] ", rank));
        }
    }
    return true;
}

void Launcher::adopt(const Started& started, const App& app, int job, int number,
                     const std::string& prefix) {
    guard_.watch(started.process.pid);
    forwarders_.emplace_back(started.process.output, standard_output_,
                             options_.label ? prefix : "");
    forwarders_.emplace_back(started.process.errors, standard_error_, options_.label ? prefix : "");
    ranks_.push_back({started.process, &app, job, number});
    ++jobs_[static_cast<std::size_t>(job)].running;
}

// --- the loop ------------------------------------------------------------------------------------

void Launcher::turn() {
    watch_everything();
    const int ready = poll(polled_.data(), polled_.size(), milliseconds_to_next_deadline());
    if (ready == 0 && !options_.label && !forwarders_.empty())
        for (std::size_t i = prompting(); i < prompting() + 2; ++i)
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
    if (in_foreground && typed_.empty() && reader().process.input >= 0)
        watch(STDIN_FILENO, POLLIN, Source::input, 0);
    if (!typed_.empty()) watch(reader().process.input, POLLOUT, Source::input, 1);
    for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (const int socket =
                jobs_[static_cast<std::size_t>(ranks_[i].job)].pmi.socket(ranks_[i].number);
            socket >= 0)
            watch(socket, POLLIN, Source::pmi, i);
    if (guest_is_here()) watch(jobs_.front().pmi.socket(0), POLLIN, Source::guest, 0);
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
                        (forwarders_[prompting()].has_partial_line() ||
                         forwarders_[prompting() + 1].has_partial_line());
    if (prompt) until(Clock::now() + std::chrono::milliseconds(kPromptMilliseconds));
    // A job that was stopped and continued in the background may read the terminal again later.
    if (forward_terminal_) until(Clock::now() + 1s);
    return wait;
}

void Launcher::handle(const Watched& watched) {
    switch (watched.source) {
        case Source::signals: break;
        case Source::input: pump_input(); break;
        case Source::pmi: look_at_pmi(watched.index); break;
        case Source::guest: look_at_guest(); break;
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
            check_sinks();
            break;
    }
}

void Launcher::pump_input() {
    int& rank_input = reader().process.input;
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
        end_job(128 + number, fmt::format("the job is ended by {}", signal_name(number)),
                Tell::at_once, number);
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
        if (rank.buried) continue;
        kill(-rank.process.pid, number);
        // A stopped process acts on nothing but SIGKILL until it is continued.
        if (contains(kEndingSignals, number)) kill(-rank.process.pid, SIGCONT);
    }
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
    if (!reason_.empty()) say(reason_);
    standard_output_.flush();
    standard_error_.flush();
}

}  // namespace gantry::mpiexec
