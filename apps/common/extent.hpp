// SPDX-License-Identifier: BSD-3-Clause
//
// The shape of a rank's arrays: its cells, and a halo around them.
#pragma once

#include "cells.hpp"

namespace gantry::apps {

class Extent {
  public:
    Extent(const Whole local[3], Whole halo) : local_{local[0], local[1], local[2]}, halo_(halo) {}

    Whole halo() const { return halo_; }
    Whole inner(int axis) const { return local_[axis]; }
    Whole padded(int axis) const { return local_[axis] + 2 * halo_; }
    Whole row() const { return padded(0); }
    Whole plane() const { return padded(0) * padded(1); }
    Whole cells() const { return plane() * padded(2); }
    Whole place(Whole x, Whole y, Whole z) const { return x + row() * y + plane() * z; }

  private:
    Whole local_[3], halo_;
};

}  // namespace gantry::apps
