// SPDX-License-Identifier: BSD-3-Clause
//
// DeathWatch: looks now and then whether the launcher has told of ranks that died. Transports notice deaths,
// too, but only of ranks that they have spoken to, or share a node with, and a network after seconds.
//
// A rank hears what the launcher has told within kTurns turns of progress.
#pragma once

#include "job/job.hpp"

namespace gantry::mpi {

class DeathWatch {
  public:
    // A look is a system call: 0.2 us in each 256 turns, which take 20 us or more.
    static constexpr int kTurns = 256;

    // `job` has that number, and outlives this. A launcher that tells nothing is not looked at.
    void begin(job::Job& job, std::uint64_t number) {
        if (job.watch_deaths(number)) job_ = &job;
    }
    void end() { job_ = nullptr; }
    // One turn of progress: calls died(const job::Death&) for each death that is news.
    template <class Died>
    void turn(const Died& died) {
        if (job_ == nullptr || --turns_to_look_ > 0) [[likely]]
            return;
        look(died);
    }

  private:
    template <class Died>
    [[gnu::cold, gnu::noinline]] void look(const Died& died) {
        turns_to_look_ = kTurns;
        for (const job::Death& each : job_->deaths())
            died(each);
    }

    job::Job* job_ = nullptr;
    int turns_to_look_ = kTurns;
};

}  // namespace gantry::mpi
