// SPDX-License-Identifier: BSD-3-Clause
//
// RowTables: page-locked memory from which a kernel reads sets of rows that are too many for its
// parameters. It comes in tables of equal size; a launch holds its own until it has ended. Made when
// somebody asks first, and kept.
#pragma once

#include "device/cuda/pinned_memory.hpp"

#include <bit>
#include <cstdint>
#include <vector>

namespace gantry::device::cuda {

class RowTables {
  public:
    static constexpr Bytes kTableBytes = 256 * kKiB;
    // Tables as bits.
    using Held = std::uint64_t;

    explicit RowTables(Driver& driver) : driver_(driver) {}
    RowTables(const RowTables&) = delete;
    RowTables& operator=(const RowTables&) = delete;

    struct Table {
        std::byte* memory = nullptr;  // null: there is none
        CUdeviceptr device = 0;       // where the GPU sees it
        Held held = 0;
    };
    // With the context current.
    Table take();
    void give_back(Held tables) { used_ &= ~tables; }
    // With the context current, before it goes.
    void close();
    // The context is gone, and the registrations with it.
    void abandon();

  private:
    static constexpr std::size_t kTablesAtOnce = 4, kMostTables = 64;
    bool grow();

    Driver& driver_;
    std::vector<PinnedMemory> slabs_;
    Held used_ = 0;
    bool refused_ = false;
};

}  // namespace gantry::device::cuda
