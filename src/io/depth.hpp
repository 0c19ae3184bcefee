// SPDX-License-Identifier: BSD-3-Clause
//
// Depth: how many pieces of an operation are under way, and waiting until fewer are. One task waits.
#pragma once

#include "base/task.hpp"

namespace gantry::io {

class Depth {
  public:
    explicit Depth(int most) : most_(most) {}
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

    void enter() { ++under_way_; }
    void leave() {
        --under_way_;
        if (waiter_ != nullptr && under_way_ < most_) std::exchange(waiter_, nullptr)->complete({});
    }
    // Ends when one more may enter.
    Task<Status> room(Executor& executor) {
        if (under_way_ < most_) co_return success();
        Completion fewer(executor);
        waiter_ = &fewer;
        Status none = co_await fewer;
        co_return none;
    }

  private:
    const int most_;
    int under_way_ = 0;
    Completion* waiter_ = nullptr;
};

// Around the body of a piece.
class Within {
  public:
    explicit Within(Depth& depth) : depth_(depth) { depth_.enter(); }
    ~Within() { depth_.leave(); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

  private:
    Depth& depth_;
};

}  // namespace gantry::io
