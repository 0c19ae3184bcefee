// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a buffer as rows: runs of equal width, equally far apart in the buffer and in packed
// memory, so that a copy engine moves many of them in one operation and touches nothing between.
// A column of a matrix is one such set; a list of blocks is one set for each block, whichever way
// there are fewer.
#pragma once

#include "layout/layout.hpp"

namespace gantry::layout {

struct Rows {
    std::ptrdiff_t offset = 0;  // of the first one, from the buffer's address
    Bytes packed = 0;           // of the first one, in packed memory
    Bytes width = 0;
    Bytes count = 0;
    Bytes pitch = 0, packed_pitch = 0;  // from one to the next, at least `width`
    Bytes bytes() const { return width * count; }
    bool operator==(const Rows&) const = default;
};

// Goes through the first `bytes` data bytes of elements of a layout, in the order of packed memory
// or block by block. The layout outlives it.
class RowWalk {
  public:
    RowWalk(const Layout& layout, Bytes bytes);
    // The next rows; false: there are no more.
    bool next(Rows& rows);
    // How many sets of rows there are; counts them.
    static Bytes sets(const Layout& layout, Bytes bytes);

  private:
    Rows next_of_element();
    Rows next_of_block();

    const Layout* layout_;
    bool by_blocks_ = false;  // each block of all whole elements at once
    Bytes elements_;          // whole ones
    Bytes left_;              // bytes that no rows were made of
    Bytes packed_ = 0;
    Bytes element_ = 0;
    std::size_t block_ = 0;
};

}  // namespace gantry::layout
