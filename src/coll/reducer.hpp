// SPDX-License-Identifier: BSD-3-Clause
//
// Reducer: how two host buffers of equal elements become one, by a predefined operation or by the
// program's function.
#pragma once

#include "layout/reduce.hpp"

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
    MPI_Datatype datatype = MPI_DATATYPE_NULL;  // what the program's function is told
    // How many handles to it the program has. There is one more while that function runs: it may
    // ask about a type that the program freed while the operation was pending.
    int* handles = nullptr;
    std::ptrdiff_t extent = 0;  // of one element
    bool commutative = true;
    OnGpu place = {};  // coll/workplace.hpp
    SeenVector source = {}, sink = {};

    // Whether `apply` calls a function of the program: await a ProgramThread first.
    bool calls_program() const { return predefined == nullptr; }
    // second[i] = first[i] op second[i], in host memory
    void apply(const void* first, void* second, std::uint64_t count) const;

  private:
    void call_program(const void* first, void* second, std::uint64_t count) const;
};

}  // namespace gantry::coll
