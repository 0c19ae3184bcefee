// SPDX-License-Identifier: BSD-3-Clause
//
// Where handle objects live. Memory of a slab is never unmapped and a freed slot is reused last, so
// any pointer that a program passes as a handle can be judged without touching foreign memory: it
// must lie on a slot of a known block, and the slot must be live. One slab per kind of
// handle. (An object that no program was shown may be freed so that its slot, which the cache still
// holds, is the next one.)
//
//   block:  [Slot 0][Slot 1]...[Slot 63]      Slot: { T object | generation, live, index }
//
// `index()` is stable while the slot lives: MPI_x_toint is built on it.
#pragma once

#include "base/status.hpp"

#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace gantry {

template <class T>
class Slab {
  public:
    Slab() = default;
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;
    // Slabs whose pointers a program holds live in the process object, which is never destroyed;
    // those of an engine in a test are.
    ~Slab() {
        for_each([](T& object) { object.~T(); });
        for (auto& [address, block] : blocks_)
            delete[] block;
    }

    // Null when memory is exhausted.
    template <class... Args>
    T* create(Args&&... args) {
        if (free_.empty() && !grow()) return nullptr;
        Slot* slot = free_.front();
        free_.pop_front();
        slot->live = true;
        ++slot->generation;
        ++live_;
        return new (slot->storage) T(std::forward<Args>(args)...);
    }

    void destroy(T* object) { free_.push_back(emptied(object)); }
    // No program ever held its address.
    void destroy_unseen(T* object) { free_.push_front(emptied(object)); }

    // The live object at this address, or null for a freed, foreign or garbage pointer.
    T* find(const void* address) const {
        Slot* slot = slot_of(address);
        return slot != nullptr && slot->live ? reinterpret_cast<T*>(slot->storage) : nullptr;
    }

    // The live object in whose memory that address lies; null: none.
    T* around(const void* address) const {
        const auto value = reinterpret_cast<std::uintptr_t>(address);
        const auto behind = blocks_.upper_bound(value);
        if (behind == blocks_.begin()) return nullptr;
        const auto& [begin, slots] = *std::prev(behind);
        const std::uintptr_t number = (value - begin) / sizeof(Slot);
        if (number >= kSlotsPerBlock || !slots[number].live) return nullptr;
        return reinterpret_cast<T*>(slots[number].storage);
    }

    std::uint32_t index(const T* object) const { return slot_of(object)->index; }
    T* at(std::uint32_t index) const {
        if (index >= slots_.size() || !slots_[index]->live) return nullptr;
        return reinterpret_cast<T*>(slots_[index]->storage);
    }
    std::size_t live() const { return live_; }

    template <class Visitor>
    void for_each(Visitor&& visit) {
        for (Slot* slot : slots_)
            if (slot->live) visit(*std::launder(reinterpret_cast<T*>(slot->storage)));
    }

  private:
    struct Slot {
        alignas(T) std::byte storage[sizeof(T)];
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool live = false;
    };
    static constexpr std::size_t kSlotsPerBlock = 64;

    Slot* emptied(T* object) {
        Slot* slot = slot_of(object);
        GANTRY_ASSERT(slot != nullptr && slot->live);
        object->~T();
        slot->live = false;
        --live_;
        return slot;
    }

    bool grow() {
        auto* block = new (std::nothrow) Slot[kSlotsPerBlock];
        if (block == nullptr) return false;
        for (std::size_t i = 0; i < kSlotsPerBlock; ++i) {
            block[i].index = static_cast<std::uint32_t>(slots_.size());
            slots_.push_back(&block[i]);
            free_.push_back(&block[i]);
        }
        blocks_.emplace(reinterpret_cast<std::uintptr_t>(block), block);
        return true;
    }

    Slot* slot_of(const void* address) const {
        const auto value = reinterpret_cast<std::uintptr_t>(address);
        if (last_block_ != 0 && value - last_block_ < sizeof(Slot) * kSlotsPerBlock) [[likely]]
            return slot_in(last_block_, value);
        return slot_in_another_block(value);
    }
    [[gnu::noinline]] Slot* slot_in_another_block(std::uintptr_t value) const {
        auto block = blocks_.upper_bound(value);
        if (block == blocks_.begin()) return nullptr;
        --block;
        if (value - block->first >= sizeof(Slot) * kSlotsPerBlock) return nullptr;
        last_block_ = block->first;
        return slot_in(last_block_, value);
    }
    static Slot* slot_in(std::uintptr_t block, std::uintptr_t value) {
        if ((value - block) % sizeof(Slot) != 0) return nullptr;
        return reinterpret_cast<Slot*>(value);
    }

    std::map<std::uintptr_t, Slot*> blocks_;
    std::vector<Slot*> slots_;
    std::deque<Slot*> free_;
    std::size_t live_ = 0;
    mutable std::uintptr_t last_block_ = 0;
};

}  // namespace gantry
