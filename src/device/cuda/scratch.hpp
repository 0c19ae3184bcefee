// SPDX-License-Identifier: BSD-3-Clause
//
// Scratch: device memory of our own, for messages that cannot go where they shall be at once. What was
// given back stays for the next one, until the end: freeing device memory waits for the whole device.
// Blocks are powers of two, so that rising sizes take no more than twice the largest.
#pragma once

#include "base/units.hpp"
#include "device/cuda/context.hpp"

#include <vector>

namespace gantry::device::cuda {

class Scratch {
  public:
    // `most`: bytes of all together (GANTRY_DEVICE_SCRATCH).
    Scratch(Driver& driver, Bytes most) : driver_(driver), most_(most) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // At least `bytes` in that context; null when that would be too much, the driver refuses, or the
    // context is gone.
    void* borrow(const Context& context, Bytes bytes);
    void give_back(void* borrowed);
    // It is gone, and its memory with it.
    void forget_context(CUcontext context);
    // Frees all of it, with nothing under way.
    void clear();
    // A forked child's: the parent's memory.
    void abandon() { blocks_.clear(); }

  private:
    struct Block {
        CUdeviceptr address = 0;
        Bytes bytes = 0;
        Context context;
        unsigned long long buffer_id = 0;  // the driver's, unique for ever
        bool lent = false;
        bool lost = false;  // went while it was lent
    };
    bool is_there(const Block& block);
    Block* find(const Context& context, Bytes least, Bytes most);
    void* allocate(const Context& context, Bytes bytes);

    Driver& driver_;
    const Bytes most_;
    Bytes bytes_ = 0;
    // The driver had no room for so much; it is asked again a while later.
    Bytes refused_ = 0;
    int until_asked_again_ = 0;
    std::vector<Block> blocks_;
};

}  // namespace gantry::device::cuda
