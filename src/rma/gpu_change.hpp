// SPDX-License-Identifier: BSD-3-Clause
//
// GpuChange: one accumulate at device memory that is made where the memory lies: a predefined
// operation by one kernel (device/reduce_kernels.hpp), MPI_REPLACE and MPI_NO_OP by copies alone. It
// goes piece by piece:
//
//   bring()                    before the lock: the operand comes to the GPU, if it is not there
//   lock | make() | unlock     what was there goes to the result, and the piece is changed
//
// What no kernel makes (reals of more than 64 bits, padded pairs, strided memory, addresses that are
// no multiples of an item's alignment), and what the plan wants on the host, is not possible here:
// target_memory.hpp has the way through host memory.
#pragma once

#include "rma/target_memory.hpp"
#include "transfer/bounce_buffer.hpp"

#include <optional>

namespace gantry::rma {

class GpuChange {
  public:
    // Of `change`, the verb, the operation and the items count; its data are in the sides.
    GpuChange(transfer::Context& context, const Change& change, const Region& target, Side operand,
              Side result);
    GpuChange(const GpuChange&) = delete;
    GpuChange& operator=(const GpuChange&) = delete;

    bool possible() const { return possible_; }
    // Bytes from the first one that have been changed.
    Bytes done() const { return done_; }
    bool ended() const { return done_ == bytes_; }

    Task<Status> bring(Executor& executor);
    // MPI_ERR_UNSUPPORTED_OPERATION: this piece has not been changed, and can be by the host.
    Task<Status> make(Executor& executor);

  private:
    bool decide(const Region& target);
    bool reads_operand_in_place() const { return operand_there_ || !reduces_; }
    Bytes piece() const;

    transfer::Context& context_;
    const Change change_;
    const Side target_, operand_, result_;
    const Bytes bytes_;
    Bytes done_ = 0;
    bool reduces_ = false;        // by a kernel; else by copies
    bool operand_there_ = false;  // the kernel reads it where it lies
    bool possible_ = false;
    std::optional<transfer::BounceBuffer> scratch_;
};

}  // namespace gantry::rma
