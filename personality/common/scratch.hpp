// SPDX-License-Identifier: BSD-3-Clause
//
// An array for the time of a call: small ones on the stack, longer ones in a buffer that the thread
// keeps for the next call.
#pragma once

#include <cstddef>
#include <type_traits>

namespace gantry::personality {

// The thread's buffer, at least that long; null when memory is exhausted. A call inside of a call
// (of an error handler) gets another one.
void* borrow_buffer(std::size_t bytes);
void return_buffer(void* buffer);

template <class T>
class Scratch {
  public:
    explicit Scratch(long count) : count_(count > 0 ? count : 0), data_(small()) {
        if (count_ <= kSmall) return;
        data_ = static_cast<T*>(borrow_buffer(static_cast<std::size_t>(count_) * sizeof(T)));
        if (data_ == nullptr) count_ = 0, ok_ = false;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        if (data_ != small() && data_ != nullptr) return_buffer(data_);
    }
    bool ok() const { return ok_; }
    long count() const { return count_; }
    T* data() { return data_; }
    T& operator[](long i) { return data_[i]; }
    const T& operator[](long i) const { return data_[i]; }

  private:
    static_assert(std::is_trivially_copyable_v<T>);
    static constexpr long kSmall = 64;
    T* small() { return reinterpret_cast<T*>(storage_); }
    long count_;
    bool ok_ = true;
    T* data_;
    alignas(T) std::byte storage_[kSmall * sizeof(T)];
};

}  // namespace gantry::personality
