// SPDX-License-Identifier: BSD-3-Clause
//
// SpareWindows: memory of windows of collective calls, which a file keeps from one call to the next: pages
// that are new cost more than what is copied into them.
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace gantry::io {

struct WindowMemory {
    std::unique_ptr<std::byte[]> bytes;  // null: there was none
    Bytes size = 0;
};

class SpareWindows {
  public:
    // Of so many bytes at least.
    WindowMemory take(Bytes size) {
        while (!spare_.empty()) {
            WindowMemory window = std::move(spare_.back());
            spare_.pop_back();
            if (window.size >= size) return window;
        }
        return {std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[size]), size};
    }
    // Two are kept: what one call needs.
    void give(WindowMemory window) {
        if (window.bytes != nullptr && spare_.size() < 2) spare_.push_back(std::move(window));
    }

  private:
    std::vector<WindowMemory> spare_;
};

}  // namespace gantry::io
