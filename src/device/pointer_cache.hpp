// SPDX-License-Identifier: BSD-3-Clause
//
// PointerCache: what a pointer is, with as few driver calls as are safe. It counts on
// one fact only: the driver never gives a buffer id twice. So:
//
//   stack, heap, program data                host        no query
//   inside an allocation known from before   its answer  one buffer_id query, which proves that it
//                                                        is still that allocation
//   anything else                            new answer  one full query; kept unless it is plain
//                                                        host memory
//
// Plain host answers outside of HostMemory are never kept: nobody reports an unmapping, and device
// memory may come to that address. The cache knows no driver: a PointerQuery asks for it (tests
// bring their own).
#pragma once

#include "base/status.hpp"
#include "device/device.hpp"
#include "device/host_memory.hpp"

#include <cstdint>
#include <map>
#include <utility>

namespace gantry::device {

struct Range {
    std::uintptr_t base = 0;
    Bytes size = 0;
    bool contains(std::uintptr_t address, Bytes bytes) const {
        const Bytes offset = address - base;
        return offset < size && bytes <= size - offset;
    }
};

// One allocation as the driver describes it. `location.base` and `size` are what one buffer id
// covers.
struct Allocation {
    Location location;
    std::uintptr_t context =
        0;  // the driver's handle of the owning context; 0: none (pools, virtual memory)
    Range range() const { return {location.base, location.size}; }
};

class PointerQuery {
  public:
    virtual ~PointerQuery() = default;
    // Plain host memory is an answer, not an error.
    virtual Result<Allocation> describe(std::uintptr_t address) = 0;
    // 0 when the driver does not know the address.
    virtual std::uint64_t buffer_id(std::uintptr_t address) = 0;
    // Whether the processor may read there: what no driver knows may also be nothing at all.
    virtual bool is_readable(std::uintptr_t address) = 0;
    // Called once per buffer id of device memory, before its first use.
    virtual void first_use(const Allocation& allocation, std::uintptr_t address) = 0;
};

class PointerCache {
  public:
    // `losses`: counts up when what was known here turns out to be gone.
    explicit PointerCache(PointerQuery& query, std::uint64_t* losses = nullptr)
        : query_(query), losses_(losses != nullptr ? *losses : own_losses_) {}

    // Memory that is host memory whatever the driver says; asks nothing.
    bool surely_host(const void* address, Bytes bytes) {
        return bytes == 0 ||
               host_.on_stack_or_heap(reinterpret_cast<std::uintptr_t>(address), bytes);
    }
    Result<Location> classify(const void* address, Bytes bytes);
    // Most pointers of a program lie in the allocation of the one before, or in that of the one
    // before that: it sends from one and receives into the other. Whether all of this buffer does,
    // as far as is known; asks nothing.
    bool in_the_last(const void* address, Bytes bytes) const {
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        if (last_ != nullptr && last_->range().contains(begin, bytes)) return true;
        if (before_ == nullptr || !before_->range().contains(begin, bytes)) return false;
        std::swap(last_, before_);
        return true;
    }
    // If so: that allocation, confirmed by one query. Null: it is gone; ask classify().
    const Allocation* confirm_last(const void* address) {
        const std::uint64_t id = query_.buffer_id(reinterpret_cast<std::uintptr_t>(address));
        return id == last_->location.buffer_id ? last_ : nullptr;
    }

    // What was last known about this address, without asking: for memory that an operation in
    // flight is using.
    const Allocation* known(const void* address) const;
    void forget_context(std::uintptr_t context);
    // Nothing known here is true any more.
    void forget_range(const void* address, Bytes bytes);
    void clear();
    std::uint64_t losses() const { return losses_; }
    std::size_t size() const { return allocations_.size(); }

  private:
    static constexpr std::size_t kMaxAllocations = 4096;  // beyond it everything is asked anew

    // The allocation at the address, confirmed or asked for; null for plain host memory.
    Result<const Allocation*> resolve(std::uintptr_t address, bool may_be_program_data);
    Result<Location> check_extent(const Allocation& first, std::uintptr_t address, Bytes bytes);
    Status check_host_extent(std::uintptr_t address, Bytes bytes);
    const Allocation* used(const Allocation& allocation) const {
        if (last_ != &allocation) before_ = std::exchange(last_, &allocation);
        return last_;
    }
    void forget_the_last() { last_ = before_ = nullptr; }
    const Allocation* remember(const Allocation& allocation);
    void forget(std::uintptr_t base);
    const Allocation* find(std::uintptr_t address) const;

    PointerQuery& query_;
    HostMemory host_;
    std::map<std::uintptr_t, Allocation> allocations_;  // by base; ranges do not overlap
    mutable const Allocation* last_ = nullptr;          // used
    mutable const Allocation* before_ = nullptr;        // before it
    std::uint64_t own_losses_ = 0;
    std::uint64_t& losses_;
    Allocation unnamed_;  // the latest answer that came without a buffer id
};

}  // namespace gantry::device
