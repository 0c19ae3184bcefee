// SPDX-License-Identifier: BSD-3-Clause
//
// How a job ends: what the ends of its ranks, their words on the PMI sockets and time mean for the
// others.
#include "launcher.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace gantry::mpiexec {
namespace {

using namespace std::chrono_literals;
constexpr auto kGrace = 2s;  // between asking a rank to end and killing it
constexpr auto kDying = 1s;  // how long a process may take to end after it began to
constexpr int kTimeoutCode = 124;

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

std::string signal_name(int number) {
    const char* short_name = sigabbrev_np(number);
    return fmt::format("signal {} (SIG{}, {})", number, short_name != nullptr ? short_name : "?",
                       strsignal(number));
}

void Launcher::collect_ended() {
    std::vector<std::pair<std::size_t, siginfo_t>> ended;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
        if (ranks_[i].ended) continue;
        siginfo_t how{};
        const int error = waitid(P_PID, static_cast<id_t>(ranks_[i].process.pid), &how,
                                 WEXITED | WNOHANG | WNOWAIT);
        if (error == 0 && how.si_pid != 0) ended.emplace_back(i, how);
    }
    // Of several at once, one that was killed is the likelier reason for the others' end.
    std::stable_partition(ended.begin(), ended.end(),
                          [](const auto& one) { return one.second.si_code != CLD_EXITED; });
    for (const auto& [index, how] : ended)
        rank_ended(index, how);
    consider_abort();
    for (Job& job : jobs_)
        if (&job != &jobs_.front() && job.running == 0) bury(job);
}

Launcher::Membership Launcher::membership(const Rank& rank) const {
    return jobs_[static_cast<std::size_t>(rank.job)].pmi.membership(rank.number);
}

void Launcher::rank_ended(std::size_t index, const siginfo_t& how) {
    look_at_pmi(index);
    Rank& ended = ranks_[index];
    ended.ended = true;
    --jobs_[static_cast<std::size_t>(ended.job)].running;
    if (phase_ != Phase::running) return;  // we asked for it
    if (others_go_on(index, how)) return;
    const bool finalized = membership(ended) == Membership::finalized;
    if (how.si_code != CLD_EXITED) {
        const int code = 128 + how.si_status;
        const std::string why =
            fmt::format("{} was killed by {}{}.{}", name(ended), signal_name(how.si_status),
                        finalized ? "" : "; the job is ended", advice(how.si_status));
        if (!finalized) return end_job(code, why);
        say(why);
        if (!exit_code_) exit_code_ = code;
        return;
    }
    ended.exit_code = how.si_status;
    if (how.si_status != 0 && !exit_code_) exit_code_ = how.si_status;
    check_membership();
}

// A rank that dies when all have begun: with --keep-going the others, who are told, do without it.
bool Launcher::others_go_on(std::size_t index, const siginfo_t& how) {
    Rank& rank = ranks_[index];
    job::PmiServer& pmi = jobs_[static_cast<std::size_t>(rank.job)].pmi;
    if (!options_.keep_going || membership(rank) != Membership::inside || !pmi.has_begun())
        return false;
    rank.lost = true;
    const bool killed = how.si_code != CLD_EXITED;
    say(killed ? fmt::format("{} was killed by {}; the others go on.{}", name(rank),
                             signal_name(how.si_status), advice(how.si_status))
               : fmt::format("{} exited with code {} before MPI_Finalize; the others go on.",
                             name(rank), how.si_status));
    if (lost_code_ == 0) lost_code_ = killed ? 128 + how.si_status : std::max(how.si_status, 1);
    pmi.lose(rank.number);
    for (Job& job : jobs_)
        if (!pmi.number().empty()) job.pmi.tell_death(pmi.number(), rank.number);
    return true;
}

// Where some rank of the job came to its end, the others' deaths are no failure.
int Launcher::code_of_the_lost() const {
    const Job& job = jobs_.front();
    for (std::size_t i = 0; i < static_cast<std::size_t>(job.size) && i < ranks_.size(); ++i)
        if (!ranks_[i].lost) return 0;
    return lost_code_;
}

// A rank that has ended without leaving MPI never comes to the others' next fence or message: they
// would wait for ever.
void Launcher::check_membership() {
    if (phase_ != Phase::running) return;
    for (const Job& job : jobs_) {
        const Rank* left = nullptr;
        // Parents wait for a spawned job to begin.
        bool others_inside = &job != &jobs_.front() && job.pmi.nobody_came();
        for (std::size_t i = 0; i < static_cast<std::size_t>(job.size); ++i) {
            if (job.first + i >= ranks_.size()) break;
            const Rank& rank = ranks_[job.first + i];
            const Membership now = membership(rank);
            if (rank.ended && now != Membership::finalized && left == nullptr) left = &rank;
            // A member that left decides about itself, too: its exit code must not look like success.
            others_inside = others_inside || now == Membership::inside ||
                            (!rank.ended && job.pmi.waits_for_round(rank.number));
        }
        if (left != nullptr && others_inside) end_job(exit_code_.value_or(1), why_left(*left));
    }
}

std::string Launcher::why_left(const Rank& rank) const {
    const int code = rank.exit_code;
    const bool was_inside = membership(rank) == Membership::inside;
    if (!was_inside && jobs_[static_cast<std::size_t>(rank.job)].pmi.round() > 0)
        return fmt::format(
            "{} has ended, but other ranks have started another MPI program, which would wait for "
            "it for ever: every rank must run as many MPI programs as the others",
            name(rank));
    if (code != 0)
        return fmt::format("{} exited with code {} {}", name(rank), code,
                           was_inside ? "before MPI_Finalize" : "without MPI_Init");
    return fmt::format(
        "{} exited with code 0 {}; the job is ended. Every rank must call {} before it exits",
        name(rank), was_inside ? "before MPI_Finalize" : "without MPI_Init",
        was_inside ? "MPI_Finalize, and MPI_Session_finalize for each session,"
                   : "MPI_Init and MPI_Finalize");
}

// Where nobody reads any more, ranks notice as if they wrote there themselves. A full disk they
// would not understand.
void Launcher::check_sinks() {
    for (const Sink* sink : {&standard_output_, &standard_error_})
        if (const int error = sink->error(); error != 0 && phase_ == Phase::running)
            end_job(1,
                    fmt::format("writing to standard {} failed: {}; the job is ended",
                                sink == &standard_output_ ? "output" : "error", strerror(error)),
                    Tell::at_once);
}

void Launcher::look_at_pmi(std::size_t index) {
    Job& job = jobs_[static_cast<std::size_t>(ranks_[index].job)];
    job.pmi.serve(ranks_[index].number);
    heed(job);
}

// What its ranks have said.
void Launcher::heed(Job& job) {
    if (!job.pmi.offence().empty()) return end_job(1, job.pmi.offence() + "; the job is ended.");
    if (job.pmi.abort_call()) return consider_abort();
    spawn_what_is_wanted(job);
    check_membership();
}

// Often a rank aborts because another one died: then that death, which the system may not have
// reported yet, is the reason.
void Launcher::consider_abort() {
    if (phase_ != Phase::running) return;
    const auto aborts = std::find_if(jobs_.begin(), jobs_.end(),
                                     [](const Job& job) { return job.pmi.abort_call(); });
    if (aborts == jobs_.end()) return;
    const auto now = Clock::now();
    if (!abort_deadline_) abort_deadline_ = now + kDying;
    const bool somebody_dies = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
        return !rank.ended && is_dying(rank.process.pid);
    });
    if (somebody_dies && now < *abort_deadline_) return;
    const auto& [who, code, reason] = *aborts->pmi.abort_call();
    const std::size_t place = aborts->first + static_cast<std::size_t>(who);
    // A code that the shell would show as success is none.
    exit_code_ = (code & 255) != 0 ? code & 255 : 1;
    end_job(*exit_code_,
            fmt::format("{} ended the job with code {}: {}.",
                        place < ranks_.size() ? name(ranks_[place]) : "the program that spawns",
                        code, reason.empty() ? "it called MPI_Abort" : reason));
}

void Launcher::check_deadlines() {
    const auto now = Clock::now();
    consider_abort();
    if (phase_ == Phase::running && deadline_ && now >= *deadline_)
        end_job(
            kTimeoutCode,
            fmt::format("the job ran longer than --timeout {} s and is ended. If its ranks wait "
                        "for each other, GANTRY_CHECK=on names calls that do not fit together.",
                        options_.timeout_seconds),
            Tell::at_once);
    if (phase_ == Phase::ending && now >= *kill_deadline_) {
        phase_ = Phase::killing;
        kill_deadline_.reset();
        signal_ranks(SIGKILL);
    }
}

void Launcher::end_job(int exit_code, const std::string& why, Tell when, int signal_number) {
    if (phase_ != Phase::running) return;
    phase_ = Phase::ending;
    deadline_.reset();
    abort_deadline_.reset();
    kill_deadline_ = Clock::now() + kGrace;
    if (!exit_code_) exit_code_ = exit_code;
    if (when == Tell::at_once)
        say(why);
    else
        reason_ = why;
    signal_ranks(signal_number);
}

int Launcher::still_running() const {
    return static_cast<int>(
        std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return !rank.ended; }));
}

std::string Launcher::name(const Rank& rank) const {
    const std::string spawned =
        rank.job > 0 ? fmt::format(" of spawned job {}", rank.job) : std::string();
    return fmt::format("rank {} of {}{} ({}, process {})", rank.number,
                       jobs_[static_cast<std::size_t>(rank.job)].size, spawned,
                       rank.app->command[0], rank.process.pid);
}

void Launcher::say(const std::string& sentence) {
    standard_error_.add(fmt::format("mpiexec: {}\n", sentence));
}

}  // namespace gantry::mpiexec
