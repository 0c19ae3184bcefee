// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/status.hpp"

#include <utility>

namespace gantry {

// The first failure of several steps that all are made.
class FirstFailure {
  public:
    void note(Status status) {
        if (first_.ok()) first_ = std::move(status);
    }
    const Status& status() const { return first_; }

  private:
    Status first_;
};

}  // namespace gantry
