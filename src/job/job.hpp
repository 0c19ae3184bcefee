// SPDX-License-Identifier: BSD-3-Clause
//
// What Gantry needs of the launcher that started the job: who am I, where is everybody,
// and a store for wire-up data. Implementations: singleton (no launcher), pmi (PMI-1), pmix,
// rendezvous (no launcher, several hosts), fake (the world's). `fence()` communicates, so it is a
// Task.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"
#include "base/task.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::job {

// What a launcher is asked to start: programs of one new job, ranks in the order of the programs.
struct SpawnedProgram {
    std::vector<std::string> command;  // the program, then its arguments
    int ranks = 1;
    std::vector<std::pair<std::string, std::string>> info;  // as the program gave it
};
struct SpawnOrder {
    std::vector<SpawnedProgram> programs;
    std::string parent_port;  // where the new job finds its parents
};

// A rank that has died, in a job whose other ranks go on: the job by a number that its ranks have given it.
struct Death {
    std::uint64_t job = 0;
    int rank = 0;
    bool operator==(const Death&) const = default;
};

class Job {
  public:
    virtual ~Job() = default;
    virtual const char* launcher()
        const = 0;  // "singleton", "pmi", "pmix", "rendezvous", "slurm", "fake"
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual std::string_view id() const = 0;  // unique among the jobs of a node
    // Node number of each rank, 0-based and dense in order of first appearance.
    virtual const std::vector<int>& nodes() const = 0;
    int local_rank() const;  // among the ranks of my node
    int local_size() const;

    // The store. `put` is local until the next fence; `get` reads what that rank put before it, any
    // number of bytes.
    virtual Status put(std::string_view key, std::string_view value) = 0;
    virtual Task<Status> fence(Executor& executor) = 0;
    virtual Result<std::string> get(int rank, std::string_view key) = 0;

    // Moves a fence in flight along; never blocks, returns how many events it handled. The engine
    // calls it from its own progress().
    virtual int progress() { return 0; }

    // What MPI_APPNUM and MPI_UNIVERSE_SIZE report; -1 when the launcher does not say.
    virtual int app_number() const { return -1; }
    virtual int universe_size() const { return -1; }

    // --- other jobs. A launcher that has no such service says so, as an MPI error.
    // Starts a job. Success: all of its ranks run.
    virtual Task<Status> spawn(Executor& executor, SpawnOrder order);
    // Where the parents of this job wait for it; empty: it was not spawned.
    virtual Result<std::string> parent_port() { return std::string(); }
    // The launcher's table of names and ports.
    virtual Task<Status> publish_name(Executor& executor, std::string name, std::string port);
    virtual Task<Status> unpublish_name(Executor& executor, std::string name);
    virtual Task<Status> lookup_name(Executor& executor, std::string name, std::string* port);

    // --- deaths. From now on the launcher tells of ranks that die, of this job, which has that number, and of
    // others that it runs. False: this one does not, and transports notice by themselves. Asked again after each
    // death (which may have been the one that told): a second call does nothing but answer.
    virtual bool watch_deaths(std::uint64_t number);
    // Those that it has told since the last call; looks once, and never blocks.
    virtual std::vector<Death> deaths() { return {}; }

    // Ends the whole job with this exit code; returns only if the launcher cannot (the caller then
    // exits).
    virtual void abort(int exit_code, std::string_view reason) = 0;
    virtual Status finalize() = 0;
};

// The job of this process: what the environment says, in the order pmix, pmi, rendezvous, slurm,
// singleton.
Result<std::unique_ptr<Job>> discover(const config::Config& config);

}  // namespace gantry::job
