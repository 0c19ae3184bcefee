// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that several ranks of one machine share; page-locked, and shared by each GPU of theirs, where
// a driver runs.
#pragma once

#include "driver.hpp"
#include "options.hpp"

namespace gantry::bench {

class SharedPinned {
  public:
    // The rank that makes it: the place to tell the others of is made, and the memory zero.
    // Everybody then maps it, and the maker closes its file when all have.
    struct Place {
        long process = -1, file = -1;
    };
    static Place make(Bytes bytes);
    static void close(Place place);

    SharedPinned(Place place, Bytes bytes);
    ~SharedPinned();
    SharedPinned(const SharedPinned&) = delete;
    SharedPinned& operator=(const SharedPinned&) = delete;

    std::byte* data() const { return static_cast<std::byte*>(memory_); }
    // 0 without a driver.
    CUdeviceptr device() const { return device_; }

  private:
    Bytes bytes_;
    void* memory_ = nullptr;
    CUdeviceptr device_ = 0;
};

}  // namespace gantry::bench
