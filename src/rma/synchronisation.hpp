// SPDX-License-Identifier: BSD-3-Clause
//
// Synchronisation: which calls are legal now (epochs.cpp), fence, post, start, complete and wait
// (active_target.cpp), and what is outstanding (flush.cpp).
#pragma once

#include "rma/window_part.hpp"

#include <vector>

namespace gantry::rma {

// How the program synchronises now.
struct Epochs {
    enum class Fence : std::uint8_t { none, open, used };
    Fence fence = Fence::none;
    bool started = false;
    std::vector<int> access;  // ranks of MPI_Win_start
    bool posted = false;
    std::vector<int> exposure;  // ranks of MPI_Win_post
    int locks = 0;
    bool lock_all = false;
};

class Synchronisation : public WindowPart {
  public:
    explicit Synchronisation(Window& its_window) : WindowPart(its_window) {}

    Task<Status> fence(Executor& executor, int assertion);
    Task<Status> post(Executor& executor, std::vector<int> origins, int assertion);
    Task<Status> start(Executor& executor, std::vector<int> targets, int assertion);
    Task<Status> complete(Executor& executor);
    Task<Status> wait(Executor& executor);
    Result<bool> test();
    Task<Status> flush(Executor& executor, int of_rank);
    Task<Status> flush_local(Executor& executor, int of_rank);
    Task<Status> flush_all(Executor& executor);
    Task<Status> flush_local_all(Executor& executor);

    Status check_access(Target& target);
    Status check_may_lock(const char* function);
    // Until all operations at that target, or at all, have ended there.
    Task<Status> complete_at(Executor& executor, int of_rank);
    Task<Status> complete_everywhere(Executor& executor);

  private:
    Status check_passive(int of_rank, const char* function);

    Status take_failure(Target& target);
    Task<Status> until_quiet(Executor& executor, int of_rank);
    Task<Status> quiet_everywhere(Executor& executor);
    Status ask_for_report(int of_rank);
    Task<Status> until_executed(Executor& executor, int of_rank);

    Task<Status> await_rendezvous(Executor& executor);
    Task<Status> meet(Executor& executor);
    Status tell(int of_rank, wire::Kind kind);
    std::uint32_t posts_of(const Target& of) const;
    std::uint32_t completes_of(const Target& of) const;
    template <class Condition>
    bool look_a_while(const Condition& condition);
    bool all_completed() const;
    bool exposed_to_lost();
    Status end_exposure();

    std::uint64_t meetings_ = 0;
};

}  // namespace gantry::rma
