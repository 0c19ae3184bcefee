// SPDX-License-Identifier: BSD-3-Clause
//
// Recycler: memory for objects of one type that come and go quickly, the last one freed reused
// first while it is still in the cache. (malloc keeps only seven freed blocks of a size at hand,
// and a window of messages has dozens.) Objects that are alive when it ends are the caller's
// mistake.
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace gantry {

template <class T>
class Recycler {
  public:
    // Returns its object to the recycler that made it.
    struct Return {
        Recycler* home = nullptr;
        void operator()(T* object) const { home->destroy(object); }
    };
    using Owner = std::unique_ptr<T, Return>;

    Recycler() = default;
    Recycler(const Recycler&) = delete;
    Recycler& operator=(const Recycler&) = delete;
    ~Recycler() {
        GANTRY_ASSERT(live_ == 0);
        for (void* memory : free_)
            ::operator delete(memory, std::align_val_t(alignof(T)));
    }

    // Throws std::bad_alloc as make_unique does.
    template <class... Args>
    Owner create(Args&&... args) {
        void* memory = nullptr;
        if (free_.empty()) {
            free_.reserve(2 * live_ + 8);  // destroy() never allocates
            memory = ::operator new(sizeof(T), std::align_val_t(alignof(T)));
        } else {
            memory = free_.back();
            free_.pop_back();
        }
        ++live_;
        return Owner(new (memory) T(std::forward<Args>(args)...), Return{this});
    }

  private:
    void destroy(T* object) {
        object->~T();
        --live_;
        free_.push_back(object);
    }

    std::vector<void*> free_;
    std::size_t live_ = 0;
};

}  // namespace gantry
