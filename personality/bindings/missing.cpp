// SPDX-License-Identifier: BSD-3-Clause
//
// What is said when a program calls MPI from Fortran or by MPI-2's C++ classes through another MPI's
// library for that. The symbols themselves are generated (bindings.py).
#include "common/fatal.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>

extern "C" [[noreturn, gnu::visibility("hidden")]] void gantry_missing_binding(const char* symbol);

void gantry_missing_binding(const char* symbol) {
    const bool cxx = std::strncmp(symbol, "_Z", 2) == 0;
    int status = 0;
    char* name = cxx ? abi::__cxa_demangle(symbol, nullptr, nullptr, &status) : nullptr;
    gantry::personality::fatal(
        "this program calls %s of its MPI's %s library, which Gantry has none for: only the C "
        "functions of MPI run on Gantry. Start it with the launcher of the MPI that it was built "
        "for, or build its parts that call MPI in C",
        name != nullptr ? name : symbol, cxx ? "C++" : "Fortran");
}
