// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/scratch.hpp"

#include "base/log.hpp"
#include "device/cuda/copies.hpp"

#include <algorithm>

namespace gantry::device::cuda {
namespace {

// What the driver reserves at least.
constexpr Bytes kUnit = 2 * kMiB;

}  // namespace

void* Scratch::borrow(const Context& context, Bytes bytes) {
    const Current current(driver_, context);
    if (!current.ok()) return nullptr;
    Block* smallest = nullptr;
    for (Block& block : blocks_)
        if (!block.lent && block.context == context && block.bytes >= bytes &&
            (smallest == nullptr || block.bytes < smallest->bytes))
            smallest = &block;
    if (smallest != nullptr) {
        smallest->lent = true;
        return reinterpret_cast<void*>(smallest->address);
    }
    Block fresh{0, round_up(std::max(bytes, kUnit), kUnit), context, true};
    if (fresh.bytes > most_ - std::min(bytes_, most_)) return nullptr;
    const CUresult result = driver_.call(driver_.cu.cuMemAlloc_v2, &fresh.address, fresh.bytes);
    if (result != CUDA_SUCCESS) {
        log::info("cuda: no {} bytes of device memory to receive aside: {}", fresh.bytes,
                  result_name(result));
        return nullptr;
    }
    bytes_ += fresh.bytes;
    blocks_.push_back(fresh);
    return reinterpret_cast<void*>(fresh.address);
}

void Scratch::give_back(void* borrowed) {
    for (Block& block : blocks_)
        if (block.address == device_address(borrowed)) block.lent = false;
}

void Scratch::forget_context(CUcontext context) {
    std::erase_if(blocks_, [&](const Block& block) {
        if (block.context.handle != context) return false;
        bytes_ -= block.bytes;
        return true;
    });
}

void Scratch::clear() {
    for (const Block& block : blocks_) {
        const Current current(driver_, block.context);
        if (current.ok()) driver_.call(driver_.cu.cuMemFree_v2, block.address);
    }
    blocks_.clear();
    bytes_ = 0;
}

}  // namespace gantry::device::cuda
