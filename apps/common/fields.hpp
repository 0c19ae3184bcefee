// SPDX-License-Identifier: BSD-3-Clause
//
// The arrays of one rank: all of one padded shape, in one allocation or in one each. With one each, a
// datatype over several fields has absolute addresses and is sent from MPI_BOTTOM.
#pragma once

#include "extent.hpp"
#include "machine.hpp"

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace gantry::apps {

enum class Allocation { slab, separate };

class Fields : public Extent {
  public:
    // Zeroed. `element`: bytes of a value, 4 or 8.
    Fields(Machine& machine, const Whole local[3], Whole halo, int count, std::size_t element,
           Allocation allocation);
    ~Fields();
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;

    Machine& machine() const { return machine_; }
    void* field(int number) const { return fields_[static_cast<std::size_t>(number)]; }
    template <class Value>
    Value* as(int number) const {
        return static_cast<Value*>(field(number));
    }
    std::size_t element() const { return element_; }
    MPI_Datatype type() const { return element_ == 8 ? MPI_DOUBLE : MPI_FLOAT; }
    std::size_t bytes() const { return static_cast<std::size_t>(cells()) * element_; }
    std::size_t all_bytes() const { return all_bytes_; }

    // What datatypes are relative to: the slab, or MPI_BOTTOM.
    void* base() const { return allocation_ == Allocation::slab ? fields_[0] : MPI_BOTTOM; }
    bool one_allocation() const { return allocation_ == Allocation::slab; }

  private:
    Machine& machine_;
    std::size_t element_, all_bytes_ = 0;
    Allocation allocation_;
    std::vector<void*> fields_, allocations_;
};

}  // namespace gantry::apps
