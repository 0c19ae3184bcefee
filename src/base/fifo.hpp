// SPDX-License-Identifier: BSD-3-Clause
//
// Fifo: small things that wait in order, in a ring that grows and is kept. std::deque allocates a
// block for every few of them, which is a twentieth of what a small device message costs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace gantry {

template <class T>
class Fifo {
    static_assert(std::is_trivially_destructible_v<T>, "what has left stays in its place");

  public:
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }
    // Counted from the oldest one.
    T& operator[](std::size_t index) { return ring_[place(index)]; }
    const T& operator[](std::size_t index) const { return ring_[place(index)]; }
    T& front() { return ring_[first_]; }
    const T& front() const { return ring_[first_]; }
    void push(const T& item) {
        if (size_ == ring_.size()) grow();
        ring_[place(size_++)] = item;
    }
    T pop() {
        const T item = front();
        first_ = place(1);
        --size_;
        return item;
    }

  private:
    static constexpr std::size_t kSmallest = 16;
    std::size_t place(std::size_t index) const { return (first_ + index) & (ring_.size() - 1); }
    void grow() {
        std::vector<T> larger(std::max(kSmallest, 2 * ring_.size()));
        for (std::size_t i = 0; i < size_; ++i)
            larger[i] = (*this)[i];
        ring_ = std::move(larger);
        first_ = 0;
    }

    std::vector<T> ring_;  // as many as a power of two
    std::size_t first_ = 0, size_ = 0;
};

}  // namespace gantry
