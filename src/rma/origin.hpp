// SPDX-License-Identifier: BSD-3-Clause
//
// Origin: where operations begin (origin.cpp), and short ones that the target carries out (errands.cpp).
#pragma once

#include "plan/window_ways.hpp"
#include "rma/window_part.hpp"

namespace gantry::rma {

class GpuChange;

class Origin : public WindowPart {
  public:
    // Bytes of items that are changed under one hold of the lock: some tens of microseconds of a
    // processor, which others may have to wait for. No result and no other process depends on it, so
    // it is no parameter.
    static constexpr Bytes kMostUnderLock = 256 * kKiB;

    explicit Origin(Window& its_window) : WindowPart(its_window) {}

    // Checks and begins it. True: it has ended. Else, and if `done` is not null, `done` tells when the
    // origin's buffers are the program's again.
    Result<bool> begin(const Access& access, Completion* done);
    // One for which the program has a request.
    Task<Status> begin_and_wait(Executor& executor, Access access);
    void ended(Operation& operation, Status status);
    // MPI_ERR_UNSUPPORTED_OPERATION: what has not been changed can be by the host.
    Task<Status> change_by_gpu(Executor& executor, ControlBlock& control, GpuChange* change);
    // Carries out what another rank of the node has left here, if there is something.
    bool serve_errand();

  private:
    Result<std::uint64_t> address_of(const Access& access) const;
    Side there(const Access& access, std::uint64_t address);
    // Whose addresses that side of a target has; 0: addresses here.
    int process_of(const Access& access, const Side& there);
    Result<bool> try_direct(const Access& access, std::uint64_t address);
    Result<bool> copy_by_kernel(const Access& access, const Side& target_side, Bytes first);
    Result<bool> await_errand(const Target& of, ErrandBox& box, Bytes blocks);
    Result<Bytes> run_errands(const Access& access, const Side& there);
    Status queue(const Access& access, std::uint64_t address, plan::WindowWay way,
                 Completion* done);
    Task<Status> carry_out_all(Executor& executor, int of_rank);
    plan::WindowCopy copier_of(const Access& access, const Side& from, const Side& to);
    Task<Status> copy_directly(Executor& executor, Operation* operation);
    Task<Status> change_directly(Executor& executor, Operation& operation);

    int between_gpus_ = 0;  // copies under way
};

}  // namespace gantry::rma
