// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a buffer as rows, so that a copy engine or a kernel moves many of them in one
// operation and touches nothing between. A column of a matrix is one such set; a list of blocks is
// one set for each block, whichever way there are fewer. A box, planes of rows, is one set for who
// takes boxes.
#pragma once

#include "layout/layout.hpp"

#include <vector>

namespace gantry::layout {

// Runs of equal width, equally far apart in the buffer and in packed memory; and that again for each
// plane.
struct Rows {
    std::ptrdiff_t offset = 0;  // of the first one, from the buffer's address
    Bytes packed = 0;           // of the first one, in packed memory
    Bytes width = 0;
    Bytes count = 0;                    // of a plane
    Bytes pitch = 0, packed_pitch = 0;  // from one to the next, at least `width` where there is one
    Bytes planes = 1;
    Bytes plane_pitch = 0, packed_plane_pitch = 0;  // from one to the next, where there is one
    Bytes bytes() const { return width * count * planes; }
    // Behind the last one.
    std::ptrdiff_t end() const {
        return offset + static_cast<std::ptrdiff_t>((planes - 1) * plane_pitch +
                                                    (count - 1) * pitch + width);
    }
    bool operator==(const Rows&) const = default;
};

enum class Sets : std::uint8_t { rows, boxes };

// Goes through the data bytes [first, first + bytes) of elements of a layout, in the order of packed
// memory or, of several repetitions of something, run by run; what it says of packed memory counts
// from `first`. It begins anywhere at the price of a search in each level. The layout outlives it.
class RowWalk {
  public:
    RowWalk(const Layout& layout, Bytes first, Bytes bytes, Sets sets = Sets::rows);
    // The next rows; false: there are no more.
    bool next(Rows& rows);

  private:
    // Inside a form that is repeated: which repetition, and which of its parts.
    struct Level {
        const Form* form;
        std::ptrdiff_t offset, stride;  // of the first repetition, to the next
        Bytes width, count;
        Bytes repetition = 0;
        std::size_t part = 0;
        std::ptrdiff_t base() const {
            return offset + static_cast<std::ptrdiff_t>(repetition) * stride;
        }
    };
    // Whole repetitions of a flat form, run by run or, as boxes, part by part.
    struct Group {
        const Form* form = nullptr;  // null: none is under way
        std::ptrdiff_t base = 0;
        Bytes pitch = 0, width = 0, count = 0;
        bool boxes = false;
        std::size_t part = 0;
        Bytes run = 0;  // of the part
    };

    void seek(Bytes first);
    void enter(const Part& part, Bytes repetition);
    // To the next part that repeats runs.
    void go_down();
    bool starts_group();
    Rows next_of_group();
    Rows next_of_part();

    Sets sets_;
    std::vector<Level> levels_;  // the buffer's elements first
    Group group_;
    Bytes left_;         // bytes that no rows were made of
    Bytes packed_ = 0;   // of the next ones
    Bytes at_ = 0;       // inside the part, as packed
    bool fresh_ = true;  // a repetition begins here
};

}  // namespace gantry::layout
