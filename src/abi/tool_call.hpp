// SPDX-License-Identifier: BSD-3-Clause
//
// ToolCall: one visit to a function of the tool information interface, as Call is to the others. No error
// handler hears of a failure: the function returns its class, and the sentence goes to the log at level
// info (GANTRY_LOG=info).
#pragma once

#include "base/status.hpp"
#include "mpi/engine/boundary.hpp"

#include <mpi.h>

#include <cstdint>

namespace gantry::abi {

class ToolCall {
  public:
    // Which calls may come before MPI_T_init_thread.
    enum class Needs : std::uint8_t { nothing, initialised };
    ToolCall(const char* function, Needs needs);
    ToolCall(const ToolCall&) = delete;
    ToolCall& operator=(const ToolCall&) = delete;

    void pointer(const char* name, const void* place) {
        if (place == nullptr) refuse_null(name);
    }
    void array(const char* name, const void* elements, int number) {
        if (number > 0) pointer(name, elements);
    }
    void thread_level(const char* name, int value);

    bool failed() const { return !failure_.ok(); }
    int leave() { return leave(std::move(failure_)); }
    int leave(const Status& outcome) const;

  private:
    const mpi::Visit visit_;
    void refuse_null(const char* name);
    void fail(Status failure) {
        if (failure_.ok()) failure_ = std::move(failure);
    }

    const char* function_;
    Status failure_;
};

}  // namespace gantry::abi
