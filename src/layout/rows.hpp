// SPDX-License-Identifier: BSD-3-Clause
//
// The data of a buffer as rows, so that a copy engine or a kernel moves many of them in one
// operation and touches nothing between. A column of a matrix is one such set; a list of blocks is
// one set for each block, whichever way there are fewer.
#pragma once

#include "layout/layout.hpp"

namespace gantry::layout {

// Goes through the data bytes [first, first + bytes) of elements of a layout, in the order of packed
// memory or block by block; what it says of packed memory counts from `first`. The layout outlives
// it.
class RowWalk {
  public:
    RowWalk(const Layout& layout, Bytes first, Bytes bytes);
    // The next rows; false: there are no more.
    bool next(Rows& rows);

  private:
    Rows next_of_element();
    Rows next_of_block();
    void enter_element();

    const Layout* layout_;
    const std::vector<Rows>* rows_;
    Bytes left_;                  // bytes that no rows were made of
    Bytes packed_ = 0;            // of the next ones
    std::ptrdiff_t element_ = 0;  // number
    Bytes at_ = 0;                // inside it, as packed
    std::size_t set_ = 0;         // of its rows
    bool blocks_pay_ = false;     // where there are several whole elements
    Bytes elements_ = 0;          // whole ones whose blocks are gone through; 0: by element
    std::size_t block_ = 0;
};

}  // namespace gantry::layout
