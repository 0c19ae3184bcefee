// SPDX-License-Identifier: BSD-3-Clause
//
// Pairs: runs of memory and runs of the file side by side, in the order of the file.
#pragma once

#include "io/transfer.hpp"
#include "layout/runs.hpp"

#include <algorithm>
#include <limits>

namespace gantry::io {

class Pairs {
  public:
    Pairs(std::byte* memory, layout::RunWalk of_memory, std::int64_t displacement,
          layout::RunWalk of_file)
        : memory_(memory),
          displacement_(displacement),
          of_memory_(std::move(of_memory)),
          of_file_(std::move(of_file)) {}

    // What adjoins on both sides: up to so many bytes, in front of that place of the file. False: there is no more.
    bool next(Segment& pair, Bytes most,
              std::int64_t end = std::numeric_limits<std::int64_t>::max()) {
        if (here_.bytes == 0 && !of_memory_.next(here_)) return false;
        if (there_.bytes == 0 && !of_file_.next(there_)) return false;
        const std::int64_t offset = displacement_ + there_.offset;
        if (offset >= end) return false;
        const Bytes both =
            std::min({here_.bytes, there_.bytes, most, static_cast<Bytes>(end - offset)});
        pair = {offset, memory_ + here_.offset, both};
        for (layout::Block* side : {&here_, &there_}) {
            side->offset += static_cast<std::ptrdiff_t>(both);
            side->bytes -= both;
        }
        return true;
    }

  private:
    std::byte* const memory_;
    const std::int64_t displacement_;
    layout::RunWalk of_memory_, of_file_;
    layout::Block here_, there_;
};

}  // namespace gantry::io
