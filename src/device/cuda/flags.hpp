// SPDX-License-Identifier: BSD-3-Clause
//
// Flags: words in page-locked host memory that a stream or a kernel writes when the work before it
// is done, so that its end is seen by a load instead of a call of the driver (1.3 us on an H200).
// Each word counts up: a number is reached once, ever.
#pragma once

#include "device/cuda/pinned_memory.hpp"

#include <atomic>

namespace gantry::device::cuda {

class Flags {
  public:
    static constexpr Bytes kCacheLine = 64;

    // `words`: how many, `stride` bytes apart (4: all in few cache lines, to be looked at
    // together); nothing is allocated before ready().
    Flags(Driver& driver, std::size_t words, Bytes stride, bool wanted)
        : driver_(driver), stride_(stride), bytes_(words * stride), wanted_(wanted) {}
    Flags(const Flags&) = delete;
    Flags& operator=(const Flags&) = delete;

    // Whether flags can be used: reserves and registers the memory at the first call, in the
    // current context.
    bool ready();
    // Queues the write behind everything in `stream`; false when the driver refuses: no flags then.
    bool write(CUstream stream, std::size_t word, std::uint32_t number);
    // The same for any word in page-locked memory.
    bool write(CUstream stream, CUdeviceptr word, std::uint32_t number);
    // Whether write_behind_word is worth a try: ready(), and the driver never refused one.
    bool writes_words() { return !words_refused_ && ready(); }
    // Queues a value of 4 or 8 bytes for device memory, and the flag behind it, in one call.
    bool write_behind_word(CUstream stream, std::size_t word, std::uint32_t number, CUdeviceptr to,
                           std::uint64_t value, Bytes bytes);
    bool reached(std::size_t word, std::uint32_t number) const {
        // Pairs with the device's write, which comes after the work before it is visible.
        const auto* flag =
            reinterpret_cast<const std::uint32_t*>(memory_.memory() + word * stride_);
        return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == number;
    }
    CUdeviceptr address(std::size_t word) const { return memory_.device() + word * stride_; }
    // With the context current, before it goes.
    void close() { memory_.close(driver_); }
    // The context is gone, and the registration with it.
    void abandon() {
        memory_.abandon();
        wanted_ = false;
    }

  private:
    Driver& driver_;
    PinnedMemory memory_;
    Bytes stride_;
    Bytes bytes_;
    bool wanted_;
    bool words_refused_ = false;
};

}  // namespace gantry::device::cuda
