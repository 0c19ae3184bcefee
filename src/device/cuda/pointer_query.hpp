// SPDX-License-Identifier: BSD-3-Clause
//
// DriverQuery: asks the driver what an address is, for the pointer cache. One
// cuPointerGetAttributes call answers everything; one cuPointerGetAttribute(BUFFER_ID) confirms.
// Neither needs a current context.
#pragma once

#include "device/cuda/driver.hpp"
#include "device/pointer_cache.hpp"

#include <unordered_map>

namespace gantry::device::cuda {

// The driver's identity of the allocation at an address; 0: it knows none. Counted in that group.
std::uint64_t buffer_id_at(Driver& driver, std::uintptr_t address, std::uint64_t Calls::*group);

class DriverQuery final : public PointerQuery {
  public:
    explicit DriverQuery(Driver& driver) : driver_(driver) {}
    Result<Allocation> describe(std::uintptr_t address) override;
    std::uint64_t buffer_id(std::uintptr_t address) override;
    bool is_readable(std::uintptr_t address) override;
    // Asked about exported memory, not for a message: counted apart.
    bool still_is(std::uintptr_t address, std::uint64_t buffer_id);
    void first_use(const Allocation& allocation, std::uintptr_t address) override;
    // Allocations of device memory that were new.
    std::uint64_t first_uses() const { return first_uses_; }

  private:
    bool pool_travels(std::uint64_t pool);
    void finish_earlier_copies(CUcontext context);

    Driver& driver_;
    std::uint64_t first_uses_ = 0;
    std::unordered_map<std::uint64_t, bool> pools_;  // whether they have a file descriptor
    int attributes_ = 0;  // how many of the attributes this driver knows; 0: not tried yet
};

}  // namespace gantry::device::cuda
