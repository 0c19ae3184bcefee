// SPDX-License-Identifier: BSD-3-Clause
//
// The data bytes of a buffer, or of a file behind a view, as runs in packed order: for who pairs two
// sides byte by byte. rows.hpp makes fewer and larger sets of them, for who moves many at once.
#pragma once

#include "layout/layout.hpp"

#include <cstdint>
#include <vector>

namespace gantry::layout {

// Goes through the data bytes [first, first + bytes) of elements of a layout. It begins anywhere at
// the price of a search in each level. Runs that adjoin are one. The layout outlives it.
class RunWalk {
  public:
    RunWalk(const Layout& layout, Bytes first, Bytes bytes);
    // The next run; false: there are no more.
    bool next(Block& run);

  private:
    // Inside a form that is repeated: which repetition, and which of its parts.
    struct Level {
        const Form* form;
        std::ptrdiff_t offset, stride;  // of the first repetition, to the next
        Bytes count;
        Bytes repetition = 0;
        std::size_t part = 0;
        std::ptrdiff_t base() const {
            return offset + static_cast<std::ptrdiff_t>(repetition) * stride;
        }
    };
    void seek(Bytes first);
    void enter(const Part& part, Bytes repetition);
    void go_down();
    bool next_single(Block& run);

    std::vector<Level> levels_;  // the buffer's elements first
    Bytes left_;                 // bytes that no run was made of
    Bytes run_ = 0, at_ = 0;     // of the part: which repetition, and where inside it
    Block ahead_;                // seen, but not given: without bytes none
};

// Where that data byte lies.
std::ptrdiff_t offset_of(const Layout& layout, Bytes data_byte);

// As MPI wants it of filetypes: whether no run begins before the one in front of it; and whether then some
// begin inside it. Of one element, or of any number of them one behind the other.
enum class Elements : std::uint8_t { one, many };
bool never_falls(const Layout& layout, Elements elements = Elements::many);
bool overlaps(const Layout& layout, Elements elements = Elements::many);

}  // namespace gantry::layout
