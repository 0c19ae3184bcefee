// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of one placement, reached by the program only as a program may: host memory directly,
// device and managed memory through driver copies. A buffer holds several messages side by side.
#pragma once

#include "driver.hpp"
#include "options.hpp"

#include <cstddef>
#include <vector>

namespace gantry::bench {

// Pinned when a driver runs, plain otherwise; for staging and for checking.
class HostMemory {
  public:
    explicit HostMemory(Bytes bytes, bool pinned);
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    std::byte* data() const { return data_; }

  private:
    std::byte* data_ = nullptr;
    bool pinned_;
};

class Buffer {
  public:
    Buffer(Placement placement, Bytes message_bytes, int messages, Rows rows = {});
    ~Buffer();
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    Bytes message_bytes() const { return message_bytes_; }  // without what lies between rows
    const Rows& rows() const { return rows_; }
    int messages() const { return messages_; }
    void* message(int index) const { return base_ + static_cast<Bytes>(index) * stride_; }
    // A program must copy this by the driver.
    bool on_device() const { return is_device(placement_) || placement_ == Placement::managed; }

    // The whole buffer from and to host memory of total_bytes(), finished when they return.
    Bytes total_bytes() const { return stride_ * static_cast<Bytes>(messages_); }
    Bytes stride() const { return stride_; }
    void write(const std::byte* from) const;
    void read(std::byte* to) const;

  private:
    Placement placement_;
    Bytes message_bytes_, stride_;
    int messages_;
    Rows rows_;
    std::byte* base_ = nullptr;
};

// Driver copies between host memory and one message, finished when they return.
void copy_to_host(std::byte* to, const void* device, Bytes bytes);
void copy_to_device(void* device, const std::byte* from, Bytes bytes);
CUdeviceptr address_of(const void* device);

}  // namespace gantry::bench
