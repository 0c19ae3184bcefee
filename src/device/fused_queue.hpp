// SPDX-License-Identifier: BSD-3-Clause
//
// FusedQueue: copies that wait to go together, and when they go; small ones, which share a launch, and
// large ones, which share a call for copy engines, in a queue each. The same rule for every device;
// what a launch is worth are facts of the GPU.
//
//   no more are to come      those that wait go, whatever flies: nothing is saved by waiting
//   nothing flies            one alone goes at once, or when none of those that are expected came
//                            with it; of several it is waited until no more come, or they are as
//                            many as a launch wants
//   copies are under way     only so many bytes that their way over the link takes longer than a
//                            launch go behind them
//
// Those above kMostFused wait at most until the end of the turn in which they came, if nothing flies:
// a call for all of them is cheaper than two, and moves them at once (docs/design/batches.md).
#pragma once

#include "base/fifo.hpp"
#include "device/device.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace gantry::device {

enum class Launches : std::uint8_t { possible, none };
enum class Sizes : std::uint8_t { small, large };  // up to kMostInOneLaunch, and above

inline Sizes sizes_of(const Copy& copy) {
    return copy.bytes <= kMostInOneLaunch ? Sizes::small : Sizes::large;
}
// Those of which nobody knows whether others come are started at once from kMostFused on: their
// program may go and compute.
inline bool goes_with_others(const Copy& copy) {
    return copy.bytes <= kMostFused || copy.batch == BatchHint::expected;
}

class FusedQueue {
  public:
    struct Item {
        Copy copy;
        Completion* done = nullptr;
    };

    explicit FusedQueue(const GpuFacts& facts, Sizes sizes = Sizes::small)
        : sizes_(sizes),
          worth_bytes_(facts.launch_worth_bytes),
          worth_copies_(facts.launch_worth_copies) {}

    bool empty() const { return items_.empty(); }
    std::size_t size() const { return items_.size(); }
    const Copy& first() const { return items_.front().copy; }

    void push(const Copy& copy, Completion& done) {
        items_.push({copy, &done});
        bytes_ += copy.bytes;
        more_came_ = true;
        company_ = copy.batch;
    }
    // Right behind push(): not to wait for progress().
    bool goes_at_once(bool flying, Launches launches) const {
        if (company_ == BatchHint::none) return true;
        if (sizes_ == Sizes::small && much_waits(launches)) return true;
        return company_ == BatchHint::unknown && items_.size() == 1 && !flying;
    }
    // When all that came at once is there; `more`: whether others are to come.
    bool goes_after_all(bool flying, BatchHint more) {
        company_ = more;
        if (more == BatchHint::none || items_.empty()) return !items_.empty();
        if (flying) return sizes_ == Sizes::large && bytes_ >= worth_bytes_;
        return items_.size() == 1 || first().bytes > kMostFused;
    }
    // In progress(), once each time: whether more came since the last time counts.
    bool goes_now(bool flying, Launches launches) {
        const bool more_came = std::exchange(more_came_, false);
        if (items_.empty()) return false;
        if (company_ == BatchHint::none || much_waits(launches)) return true;
        return !flying && (!more_came || items_.size() >= worth_copies_);
    }
    // How many of the oldest go together: not too many bytes, nor more than `most`.
    std::size_t first_group(std::size_t most) const {
        std::size_t count = 1;
        for (Bytes bytes = first().bytes; count < items_.size() && count < most; ++count) {
            bytes += items_[count].copy.bytes;
            if (bytes > kMostInOneCall) break;
        }
        return count;
    }
    // The oldest ones leave, into a vector that keeps its memory; nobody loses them in between.
    void copy_first(std::size_t count, std::vector<Item>& to) const {
        to.clear();
        for (std::size_t i = 0; i < count; ++i)
            to.push_back(items_[i]);
    }
    void drop_first(std::size_t count) {
        for (; count > 0; --count)
            pop();
    }
    Item pop() {
        const Item item = items_.pop();
        bytes_ -= item.copy.bytes;
        return item;
    }

  private:
    bool much_waits(Launches launches) const {
        return bytes_ >= worth_bytes_ && (launches == Launches::possible || sizes_ == Sizes::large);
    }

    const Sizes sizes_;
    const Bytes worth_bytes_;
    const std::size_t worth_copies_;
    Fifo<Item> items_;
    Bytes bytes_ = 0;
    bool more_came_ = false;                  // since the last goes_now()
    BatchHint company_ = BatchHint::unknown;  // of those that wait
};

}  // namespace gantry::device
