// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs that ranks spawn (MPI_Comm_spawn): their ranks join the loop of the launcher. A program that no
// launcher started becomes the guest of an mpiexec of its own (--serve): a job of one rank, which this
// mpiexec has not started and does not end.
#include "launcher.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace gantry::mpiexec {
namespace {

// The keys of the standard (MPI 5.0 section 11.8.4) that mean something to a launcher of one machine.
// Empty: the program can be started so.
std::string take_info(App& app, const job::SpawnedProgram& program) {
    for (const auto& [key, value] : program.info) {
        if (key == "wdir") app.folder = value;
        if (key == "path") app.path = value;
        if (key != "host") continue;
        char name[256] = {};
        gethostname(name, sizeof name - 1);
        const std::string here(name);
        if (value != "localhost" && value != here && value != here.substr(0, here.find('.')))
            return fmt::format(
                "info key host is {}, but this mpiexec starts processes on its own machine, {}",
                value, here);
    }
    return {};
}

}  // namespace

void Launcher::spawn_what_is_wanted(Job& asking) {
    while (const auto wanted = asking.pmi.next_spawn()) {
        const std::string failure =
            phase_ == Phase::running ? spawn(wanted->request) : std::string("the job is ending");
        asking.pmi.answer_spawn(wanted->rank, failure);
    }
}

std::string Launcher::spawn(const job::SpawnRequest& request) {
    std::vector<App> apps;
    int size = 0;
    for (const job::SpawnedProgram& program : request.programs) {
        App app;
        app.ranks = program.ranks;
        app.command = program.command;
        const std::string mistake = take_info(app, program);
        if (!mistake.empty()) return mistake;
        size += app.ranks;
        apps.push_back(std::move(app));
    }
    if (size < 1) return "no process is asked for";
    Job& job = jobs_.emplace_back(fmt::format("{}-{}", name_, jobs_.size()), std::move(apps), size);
    job.first = ranks_.size();
    job.pmi.keep_names(names_);
    job.pmi.take_spawns();
    if (options_.keep_going) job.pmi.offer_deaths();
    for (const auto& [key, value] : request.preput)
        job.pmi.preput(key, value);
    for (std::size_t number = 0; number < job.apps.size(); ++number)
        for (int i = 0; i < job.apps[number].ranks; ++i) {
            const std::string failure = start_spawned(job, static_cast<int>(number));
            if (failure.empty()) continue;
            for (std::size_t rank = job.first; rank < ranks_.size(); ++rank) {
                kill(-ranks_[rank].process.pid, SIGKILL);
                ranks_[rank].ended = true;
            }
            job.running = 0;
            bury(job);
            return failure;
        }
    return {};
}

// The next rank of that job. Empty: it runs.
std::string Launcher::start_spawned(Job& job, int number) {
    const App& app = job.apps[static_cast<std::size_t>(number)];
    const int rank = static_cast<int>(ranks_.size() - job.first);
    const int index = static_cast<int>(jobs_.size()) - 1;
    Start what{&app, &options_.variables, rank, job.size, Input::nothing, descriptors_, {}};
    what.spawned = true;
    what.path = app.path;
    const Started started = start(what);
    if (!started.failure.empty()) return started.failure;
    job.pmi.add_rank(rank, started.process.pmi, number);
    adopt(started, app, index, rank, fmt::format("[{}.{}] ", index, rank));
    return {};
}

// All its ranks have ended: what they started ends with them, and what the job held here is free.
void Launcher::bury(Job& job) {
    for (std::size_t i = job.first; i < job.first + static_cast<std::size_t>(job.size); ++i) {
        if (i >= ranks_.size() || ranks_[i].buried) continue;
        Rank& rank = ranks_[i];
        kill(-rank.process.pid, SIGKILL);
        waitpid(rank.process.pid, nullptr, 0);
        guard_.forget(rank.process.pid);
        job.pmi.close_socket(rank.number);
        rank.buried = true;
    }
}

bool Launcher::guest_is_here() const {
    return options_.serve >= 0 && jobs_.front().pmi.socket(0) >= 0;
}

// A guest that ends without a word takes its jobs with it.
void Launcher::look_at_guest() {
    Job& guest = jobs_.front();
    const bool here = guest.pmi.serve(0);
    heed(guest);
    if (!here && guest.pmi.membership(0) != Membership::finalized)
        end_job(1,
                "the program that spawned these processes has ended before MPI_Finalize; they are "
                "ended");
}

}  // namespace gantry::mpiexec
