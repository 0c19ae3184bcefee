// SPDX-License-Identifier: BSD-3-Clause
//
// Data representations (MPI 5.0 section 14.5): how bytes in a file stand for items. "native" and
// "internal" are the machine's own, "external32" is the standard's, others come from
// MPI_Register_datarep. What is none of the machine's is converted on its way, a few megabytes at a
// time, in host memory.
#pragma once

#include "base/status.hpp"
#include "layout/layout.hpp"
#include "mpi/engine/handles.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::mpi {

struct Datatype;

struct Datarep {
    enum class Kind { native, external32, registered };
    std::string name;
    Kind kind = Kind::native;
    // Of a registered one; null functions: as the machine has it.
    MPI_Datarep_conversion_function* read = nullptr;
    MPI_Datarep_conversion_function* write = nullptr;
    MPI_Datarep_conversion_function_c* read_c = nullptr;
    MPI_Datarep_conversion_function_c* write_c = nullptr;
    MPI_Datarep_extent_function* extent = nullptr;
    void* extra_state = nullptr;

    bool converts() const {
        return kind == Kind::external32 || read != nullptr || write != nullptr ||
               read_c != nullptr || write_c != nullptr;
    }
    // The bytes of one element in a file.
    Result<Bytes> size_of(const Datatype& datatype) const;
    // How an element lies in a file.
    Result<layout::Layout> layout_of(const Datatype& datatype) const;
};

class Datareps {
  public:
    Datareps();
    // Null: there is none of that name.
    const Datarep* find(std::string_view name) const;
    Status add(Datarep datarep);

  private:
    std::vector<std::unique_ptr<const Datarep>> all_;  // never removed: files refer to them
};

}  // namespace gantry::mpi
