// SPDX-License-Identifier: BSD-3-Clause
//
// DirectStorage: a library that moves bytes between files and device memory without host memory between
// them (NVIDIA's GPUDirect Storage). Its calls block; any thread makes them.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace gantry::device {

class DirectStorage {
  public:
    virtual ~DirectStorage() = default;
    // A file that is open with O_DIRECT, from now on by its handle; refused where the file system cannot.
    virtual Result<void*> add(int file) = 0;
    virtual void remove(void* handle) = 0;
    // Bytes that were moved, or -errno.
    virtual std::int64_t read(void* handle, void* memory, Bytes bytes, std::int64_t offset) = 0;
    virtual std::int64_t write(void* handle, const void* memory, Bytes bytes,
                               std::int64_t offset) = 0;
};

// The library `name`, where it is there and its kernel module as well; the failure says what is missing.
Result<std::unique_ptr<DirectStorage>> open_direct_storage(const std::string& name);

}  // namespace gantry::device
