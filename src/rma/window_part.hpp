// SPDX-License-Identifier: BSD-3-Clause
//
// WindowPart: what each part of a window (window.hpp) sees of the whole.
#pragma once

#include "base/task.hpp"
#include "rma/target.hpp"

namespace gantry::rma {

class Window;
class Windows;

class WindowPart {
  public:
    WindowPart(const WindowPart&) = delete;
    WindowPart& operator=(const WindowPart&) = delete;

  protected:
    explicit WindowPart(Window& its_window);
    ~WindowPart() = default;

    Window& window;
    Windows& windows;
    int rank() const;
    int size() const;
    Target& target(int of_rank) const;
    Target& mine() const;
};

}  // namespace gantry::rma
