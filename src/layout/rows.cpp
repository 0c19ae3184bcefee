// SPDX-License-Identifier: BSD-3-Clause
#include "layout/rows.hpp"

#include <algorithm>

namespace gantry::layout {
namespace {

// What a copy engine takes as the distance of rows (CU_DEVICE_ATTRIBUTE_MAX_PITCH).
constexpr Bytes kLargestPitch = 0x7fffffff;

// Rows that begin with that block, as many as follow in `left` bytes.
Rows rows_from(const std::vector<Block>& blocks, std::size_t first, Bytes left) {
    Rows rows{
        .offset = blocks[first].offset, .width = std::min(blocks[first].bytes, left), .count = 1};
    std::ptrdiff_t last = rows.offset;
    for (std::size_t next = first + 1; next < blocks.size(); ++next) {
        const std::ptrdiff_t distance = blocks[next].offset - last;
        if (blocks[next].bytes != rows.width || rows.bytes() + rows.width > left ||
            distance < static_cast<std::ptrdiff_t>(rows.width) ||
            distance > static_cast<std::ptrdiff_t>(kLargestPitch) ||
            (rows.count > 1 && distance != static_cast<std::ptrdiff_t>(rows.pitch)))
            break;
        rows.pitch = static_cast<Bytes>(distance);
        last = blocks[next].offset;
        ++rows.count;
    }
    rows.packed_pitch = rows.width;
    if (rows.count == 1) rows.pitch = rows.width;
    return rows;
}

Bytes sets_of_element(const Layout& layout) {
    Bytes sets = 0;
    for (std::size_t block = 0; block < layout.blocks.size(); ++sets)
        block += rows_from(layout.blocks, block, layout.size).count;
    return sets;
}

// Whether all elements' copies of one block are rows.
bool elements_are_rows(const Layout& layout) {
    const std::ptrdiff_t extent = layout.extent;
    return extent > 0 && extent <= static_cast<std::ptrdiff_t>(kLargestPitch) &&
           layout.size <= kLargestPitch &&
           std::ranges::all_of(layout.blocks, [extent](const Block& block) {
               return static_cast<std::ptrdiff_t>(block.bytes) <= extent;
           });
}

}  // namespace

RowWalk::RowWalk(const Layout& layout, Bytes bytes)
    : layout_(&layout), elements_(layout.size > 0 ? bytes / layout.size : 0), left_(bytes) {
    by_blocks_ = elements_ > 1 && elements_are_rows(layout) &&
                 layout.blocks.size() < elements_ * sets_of_element(layout);
}

bool RowWalk::next(Rows& rows) {
    if (left_ == 0) return false;
    rows = by_blocks_ ? next_of_block() : next_of_element();
    left_ -= rows.bytes();
    if (rows.pitch == rows.width && rows.packed_pitch == rows.width)  // one run
        rows = {rows.offset, rows.packed, rows.bytes(), 1, rows.bytes(), rows.bytes()};
    return true;
}

Rows RowWalk::next_of_element() {
    Rows rows = rows_from(layout_->blocks, block_, left_);
    rows.offset += static_cast<std::ptrdiff_t>(element_) * layout_->extent;
    rows.packed = packed_;
    packed_ += rows.bytes();
    block_ += rows.count;
    if (block_ == layout_->blocks.size()) {
        block_ = 0;
        ++element_;
    }
    return rows;
}

Rows RowWalk::next_of_block() {
    const Block& block = layout_->blocks[block_];
    const Rows rows{.offset = block.offset,
                    .packed = packed_,
                    .width = block.bytes,
                    .count = elements_,
                    .pitch = static_cast<Bytes>(layout_->extent),
                    .packed_pitch = layout_->size};
    packed_ += block.bytes;
    if (++block_ == layout_->blocks.size()) {  // what is left is a part of one more element
        by_blocks_ = false;
        block_ = 0;
        element_ = elements_;
        packed_ = elements_ * layout_->size;
    }
    return rows;
}

Bytes RowWalk::sets(const Layout& layout, Bytes bytes) {
    RowWalk walk(layout, bytes);
    Bytes sets = 0;
    for (Rows rows; walk.next(rows);)
        ++sets;
    return sets;
}

}  // namespace gantry::layout
