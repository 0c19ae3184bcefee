// SPDX-License-Identifier: BSD-3-Clause
//
// Reducer: how two host buffers of equal elements become one, by a predefined operation or by the
// program's function.
#pragma once

#include "base/program_call.hpp"
#include "layout/reduce.hpp"

#include <mpi-ext.h>
#include <mpi.h>

#include <cstdint>

namespace gantry::coll {

// The GPU on which a reducer works; none: the host.
struct OnGpu {
    const void* like = nullptr;  // device memory of the program there
    int gpu = -1;
    bool on_device() const { return like != nullptr; }
};

// What the device has said of a vector of the program: it is asked once for an operation.
struct SeenVector {
    const void* address = nullptr;
    int gpu = -1;  // -1: not in device memory
};

struct Reducer {
    layout::Reduction predefined = nullptr;
    // The same by name, for kernels.
    layout::Operation operation = layout::Operation::no_op;
    layout::Element element = layout::Element::none;
    std::uint64_t items = 1;  // basic items per element, for a predefined operation
    MPI_User_function* function = nullptr;
    MPI_User_function_c* function_c = nullptr;
    MPIX_User_function_x* function_x = nullptr;
    void* extra_state = nullptr;                // of function_x
    MPI_Datatype datatype = MPI_DATATYPE_NULL;  // what the program's function is told
    // How many handles to it the program has. There is one more while that function runs (TypeInUse):
    // it may ask about a type that the program freed while the operation was pending.
    int* handles = nullptr;
    std::ptrdiff_t extent = 0;  // of one element
    bool commutative = true;
    OnGpu place = {};  // coll/workplace.hpp
    SeenVector source = {}, sink = {};

    // Whether `apply` calls a function of the program: coroutines await Apply.
    bool calls_program() const { return predefined == nullptr; }
    // second[i] = first[i] op second[i], in host memory
    void apply(const void* first, void* second, std::uint64_t count) const;
};

// Around a call of the program's function: the datatype stays.
class TypeInUse {
  public:
    explicit TypeInUse(const Reducer& reducer) : handles_(reducer.handles) {
        if (handles_ != nullptr) ++*handles_;
    }
    ~TypeInUse() {
        if (handles_ != nullptr) --*handles_;
    }
    TypeInUse(const TypeInUse&) = delete;
    TypeInUse& operator=(const TypeInUse&) = delete;

  private:
    int* handles_;
};

// `Apply each(executor, reducer, first, second, count);  co_await each;` applies the reducer,
// wherever functions of the program may be called.
class Apply {
  public:
    Apply(Executor& executor, const Reducer& reducer, const void* first, void* second,
          std::uint64_t count)
        : reducer_(reducer),
          first_(first),
          second_(second),
          count_(count),
          in_use_(reducer),
          call_(
              executor, [](const void* self) { static_cast<const Apply*>(self)->run(); }, this) {}
    bool await_ready() {
        if (reducer_.calls_program() && count_ > 0) return call_.await_ready();
        run();
        return true;
    }
    void await_suspend(std::coroutine_handle<> self) { call_.await_suspend(self); }
    void await_resume() const {}

  private:
    void run() const { reducer_.apply(first_, second_, count_); }

    const Reducer& reducer_;
    const void* first_;
    void* second_;
    std::uint64_t count_;
    TypeInUse in_use_;
    ProgramCall call_;
};

}  // namespace gantry::coll
