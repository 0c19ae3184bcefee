// SPDX-License-Identifier: BSD-3-Clause
//
// A few blocks are kept, so they are searched one by one, the last used first: it is in the cache.
#include "coll/scratch.hpp"

#include <cstdlib>

namespace gantry::coll {
namespace {

constexpr std::size_t kMostBlocks = 64;
constexpr Bytes kUnit = 4 * kKiB;  // sizes are multiples, so that similar operations share blocks
// A block is not used for less than a quarter of it.
constexpr Bytes kLoose = 4;

}  // namespace

Scratch::~Scratch() {
    for (const Kept& block : kept_)
        std::free(block.address);
}

Scratch::Block::~Block() {
    if (address_ == nullptr) return;
    if (pool_ != nullptr)
        pool_->give_back(address_, bytes_);
    else
        std::free(address_);
}

Scratch::Block Scratch::take(Scratch* pool, Bytes bytes) {
    Block block;
    block.pool_ = pool;
    block.bytes_ = (bytes / kUnit + 1) * kUnit;
    if (block.bytes_ < bytes) return block;
    if (pool != nullptr) {
        std::vector<Kept>& kept = pool->kept_;
        for (std::size_t i = kept.size(); i-- > 0;) {
            if (kept[i].bytes < block.bytes_ || kept[i].bytes / kLoose > block.bytes_) continue;
            block.address_ = kept[i].address;
            block.bytes_ = kept[i].bytes;
            pool->kept_bytes_ -= block.bytes_;
            kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
            return block;
        }
        ++pool->allocations_;
    }
    block.address_ = std::aligned_alloc(kUnit, block.bytes_);
    return block;
}

void Scratch::give_back(void* address, Bytes bytes) {
    if (bytes > bound_) return std::free(address);
    while (!kept_.empty() && (kept_.size() == kMostBlocks || kept_bytes_ + bytes > bound_)) {
        std::free(kept_.front().address);  // unused for longest
        kept_bytes_ -= kept_.front().bytes;
        kept_.erase(kept_.begin());
    }
    if (kept_.capacity() == 0) kept_.reserve(kMostBlocks);
    kept_.push_back({address, bytes});
    kept_bytes_ += bytes;
}

}  // namespace gantry::coll
