// SPDX-License-Identifier: BSD-3-Clause
#include "layout/rows.hpp"

#include <algorithm>

namespace gantry::layout {
namespace {

// What a copy engine takes as the distance of rows (CU_DEVICE_ATTRIBUTE_MAX_PITCH).
constexpr Bytes kLargestPitch = 0x7fffffff;

// One run is one row.
Rows run_or_rows(Rows rows) {
    if (rows.count == 1) rows.pitch = rows.packed_pitch = rows.width;
    if (rows.pitch == rows.width && rows.packed_pitch == rows.width)
        return {rows.offset, rows.packed, rows.bytes(), 1, rows.bytes(), rows.bytes()};
    return rows;
}

// Rows that begin with that block, as many as follow.
Rows rows_from(const std::vector<Block>& blocks, std::size_t first) {
    Rows rows{.offset = blocks[first].offset, .width = blocks[first].bytes, .count = 1};
    std::ptrdiff_t last = rows.offset;
    for (std::size_t next = first + 1; next < blocks.size(); ++next) {
        const std::ptrdiff_t distance = blocks[next].offset - last;
        if (blocks[next].bytes != rows.width ||
            distance < static_cast<std::ptrdiff_t>(rows.width) ||
            distance > static_cast<std::ptrdiff_t>(kLargestPitch) ||
            (rows.count > 1 && distance != static_cast<std::ptrdiff_t>(rows.pitch)))
            break;
        rows.pitch = static_cast<Bytes>(distance);
        last = blocks[next].offset;
        ++rows.count;
    }
    rows.packed_pitch = rows.width;
    return rows;
}

Shape shape_of(const std::vector<Block>& blocks) {
    Shape shape;
    if (!blocks.empty()) shape.span = {blocks[0].offset, blocks[0].offset};
    for (const Block& block : blocks) {
        shape.span.low = std::min(shape.span.low, block.offset);
        shape.span.high =
            std::max(shape.span.high, block.offset + static_cast<std::ptrdiff_t>(block.bytes));
    }
    Bytes packed = 0;
    for (std::size_t block = 0; block < blocks.size();) {
        Rows rows = rows_from(blocks, block);
        rows.packed = packed;
        packed += rows.bytes();
        block += rows.count;
        shape.widest = std::max(shape.widest, rows.width);
        shape.rows.push_back(rows);
    }
    return shape;
}

// Whether all elements' copies of one block are rows.
bool elements_are_rows(const Layout& layout) {
    const std::ptrdiff_t extent = layout.extent;
    return extent > 0 && extent <= static_cast<std::ptrdiff_t>(kLargestPitch) &&
           layout.size <= kLargestPitch &&
           static_cast<std::ptrdiff_t>(layout.shape().widest) <= extent;
}

}  // namespace

const Shape& Layout::shape() const {
    if (known_shape == nullptr) known_shape = std::make_shared<const Shape>(shape_of(blocks));
    return *known_shape;
}

// Short pieces are many, and divisions the dearest part of a short one.
RowWalk::RowWalk(const Layout& layout, Bytes first, Bytes bytes)
    : layout_(&layout), rows_(&layout.shape().rows), left_(layout.size > 0 ? bytes : 0) {
    if (bytes >= 2 * layout.size && layout.size > 0)
        blocks_pay_ =
            layout.blocks.size() < bytes / layout.size * rows_->size() && elements_are_rows(layout);
    if (first > 0 && layout.size > 0) {
        element_ = static_cast<std::ptrdiff_t>(first / layout.size);
        at_ = first % layout.size;
        const auto behind = std::ranges::upper_bound(*rows_, at_, {}, &Rows::packed);
        set_ = static_cast<std::size_t>(behind - rows_->begin()) - 1;
    }
    if (at_ == 0) enter_element();
}

void RowWalk::enter_element() {
    at_ = 0;
    set_ = 0;
    if (blocks_pay_ && left_ >= 2 * layout_->size) elements_ = left_ / layout_->size;
}

bool RowWalk::next(Rows& rows) {
    if (left_ == 0) return false;
    rows = run_or_rows(elements_ > 0 ? next_of_block() : next_of_element());
    left_ -= rows.bytes();
    if (elements_ > 0 ? block_ == layout_->blocks.size() : at_ == layout_->size) {
        element_ += elements_ > 0 ? static_cast<std::ptrdiff_t>(elements_) : 1;
        packed_ += elements_ * layout_->size;
        elements_ = 0;
        block_ = 0;
        enter_element();
    }
    return true;
}

// Whole rows, as many as there are, or what is left of one.
Rows RowWalk::next_of_element() {
    const Rows& set = (*rows_)[set_];
    Rows rows = set;
    if (at_ == set.packed && left_ >= set.bytes()) {
        rows.offset += element_ * layout_->extent;
        rows.packed = packed_;
        packed_ += rows.bytes();
        at_ += rows.bytes();
        ++set_;
        return rows;
    }
    const Bytes into = at_ - set.packed, row = into / set.width, column = into % set.width;
    rows.offset +=
        element_ * layout_->extent + static_cast<std::ptrdiff_t>(row * set.pitch + column);
    rows.packed = packed_;
    rows.count = std::min(set.count - row, left_ / set.width);
    if (column > 0 || rows.count == 0) {
        rows.count = 1;
        rows.width = std::min(set.width - column, left_);
    }
    packed_ += rows.bytes();
    at_ += rows.bytes();
    if (at_ == set.packed + set.bytes()) ++set_;
    return rows;
}

// One block of all whole elements.
Rows RowWalk::next_of_block() {
    const Block& block = layout_->blocks[block_++];
    const Rows rows{.offset = block.offset + element_ * layout_->extent,
                    .packed = packed_ + at_,
                    .width = block.bytes,
                    .count = elements_,
                    .pitch = static_cast<Bytes>(layout_->extent),
                    .packed_pitch = layout_->size};
    at_ += block.bytes;
    return rows;
}

}  // namespace gantry::layout
