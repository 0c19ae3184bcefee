// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/scratch.hpp"

#include "base/log.hpp"
#include "device/cuda/copies.hpp"

#include <algorithm>
#include <bit>

namespace gantry::device::cuda {
namespace {

// What the driver reserves at least.
constexpr Bytes kUnit = 2 * kMiB;
constexpr int kTimesUntilAskedAgain = 100;

}  // namespace

// An older driver does not tell one life of a context from the next.
bool Scratch::is_there(const Block& block) {
    unsigned long long id = 0;
    return driver_.call(driver_.cu.cuPointerGetAttribute, static_cast<void*>(&id),
                        CU_POINTER_ATTRIBUTE_BUFFER_ID, block.address) == CUDA_SUCCESS &&
           id == block.buffer_id;
}

Scratch::Block* Scratch::find(const Context& context, Bytes least, Bytes most) {
    Block* smallest = nullptr;
    for (Block& block : blocks_)
        if (!block.lent && block.context == context && block.bytes >= least &&
            block.bytes <= most && (smallest == nullptr || block.bytes < smallest->bytes))
            smallest = &block;
    if (smallest == nullptr || is_there(*smallest)) return smallest;
    bytes_ -= smallest->bytes;
    blocks_.erase(blocks_.begin() + (smallest - blocks_.data()));
    return find(context, least, most);
}

void* Scratch::borrow(const Context& context, Bytes bytes) {
    const Current current(driver_, context);
    if (!current.ok()) return nullptr;
    const Bytes whole = std::bit_ceil(std::max(bytes, kUnit));
    Block* block = find(context, bytes, whole);
    if (block == nullptr) {
        if (void* const fresh = allocate(context, whole)) return fresh;
        block = find(context, bytes, most_);
    }
    if (block == nullptr) return nullptr;
    block->lent = true;
    return reinterpret_cast<void*>(block->address);
}

void* Scratch::allocate(const Context& context, Bytes bytes) {
    if (bytes > most_ - std::min(bytes_, most_)) return nullptr;
    if (refused_ != 0 && bytes >= refused_ && until_asked_again_-- > 0) return nullptr;
    Block fresh{.bytes = bytes, .context = context, .lent = true};
    const CUresult result = driver_.call(driver_.cu.cuMemAlloc_v2, &fresh.address, bytes);
    if (result != CUDA_SUCCESS) {
        log::info("cuda: no {} bytes of device memory to receive aside: {}", bytes,
                  result_name(result));
        refused_ = bytes;
        until_asked_again_ = kTimesUntilAskedAgain;
        return nullptr;
    }
    refused_ = 0;
    driver_.call(driver_.cu.cuPointerGetAttribute, static_cast<void*>(&fresh.buffer_id),
                 CU_POINTER_ATTRIBUTE_BUFFER_ID, fresh.address);
    bytes_ += bytes;
    blocks_.push_back(fresh);
    return reinterpret_cast<void*>(fresh.address);
}

// Of two at one address the one that is lost goes first: the other is then lent too long, not twice.
void Scratch::give_back(void* borrowed) {
    const auto lies_there = [borrowed](const Block& block) {
        return block.lent && block.address == device_address(borrowed);
    };
    const auto lost = std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& block) {
        return lies_there(block) && block.lost;
    });
    if (lost != blocks_.end()) {
        blocks_.erase(lost);
        return;
    }
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), lies_there);
    if (found != blocks_.end()) found->lent = false;
}

void Scratch::forget_context(CUcontext context) {
    for (Block& block : blocks_) {
        if (block.context.handle != context || block.lost) continue;
        bytes_ -= block.bytes;
        block.lost = true;
    }
    std::erase_if(blocks_, [](const Block& block) { return block.lost && !block.lent; });
}

void Scratch::clear() {
    for (const Block& block : blocks_) {
        const Current current(driver_, block.context);
        if (current.ok() && !block.lost && is_there(block))
            driver_.call(driver_.cu.cuMemFree_v2, block.address);
    }
    blocks_.clear();
    bytes_ = 0;
}

}  // namespace gantry::device::cuda
