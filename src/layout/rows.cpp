// SPDX-License-Identifier: BSD-3-Clause
#include "layout/rows.hpp"

#include "layout/pitch.hpp"

#include <algorithm>
#include <limits>

namespace gantry::layout {
namespace {

// One run is one row, and rows without gaps are one.
Rows simplest(Rows rows) {
    if (rows.planes > 1) return rows;
    if (rows.count == 1) rows.pitch = rows.packed_pitch = rows.width;
    if (rows.pitch == rows.width && rows.packed_pitch == rows.width)
        return {rows.offset, rows.packed, rows.bytes(), 1, rows.bytes(), rows.bytes()};
    return rows;
}

// Whether all repetitions of one run are rows.
bool repetitions_are_rows(const Form& form, std::ptrdiff_t stride) {
    return is_pitch(stride, form.widest) && form.size <= kLargestPitch;
}

// Whether all repetitions of each part are rows, or planes of rows.
bool repetitions_are_boxes(const Form& form, std::ptrdiff_t stride) {
    return stride > 0 && std::ranges::all_of(form.parts, [stride](const Part& part) {
               return is_pitch(part.count == 1 ? stride : part.stride, part.width);
           });
}

}  // namespace

RowWalk::RowWalk(const Layout& layout, Bytes first, Bytes bytes, Sets sets)
    : sets_(sets), left_(layout.size > 0 ? bytes : 0) {
    if (left_ == 0) return;
    levels_.push_back({layout.form.get(), 0, layout.extent, layout.size,
                       std::numeric_limits<Bytes>::max(), first / layout.size});
    seek(first % layout.size);
}

// To that place in the last level's repetition.
void RowWalk::seek(Bytes first) {
    while (true) {
        Level& level = levels_.back();
        fresh_ = first == 0;
        if (fresh_) return;
        const std::vector<Part>& parts = level.form->parts;
        const auto behind = std::ranges::upper_bound(parts, first, {}, &Part::packed);
        level.part = static_cast<std::size_t>(behind - parts.begin()) - 1;
        const Part& part = parts[level.part];
        at_ = first - part.packed;
        if (part.inner == nullptr || at_ == 0) return;
        enter(part, at_ / part.width);
        first = at_ % part.width;
        at_ = 0;
    }
}

void RowWalk::enter(const Part& part, Bytes repetition) {
    levels_.push_back({part.inner.get(), levels_.back().base() + part.offset, part.stride,
                       part.width, part.count, repetition});
    fresh_ = true;
}

bool RowWalk::next(Rows& rows) {
    if (left_ == 0) return false;
    if (group_.form == nullptr) go_down();
    rows = simplest(group_.form != nullptr ? next_of_group() : next_of_part());
    left_ -= rows.bytes();
    return true;
}

void RowWalk::go_down() {
    while (true) {
        Level& level = levels_.back();
        if (fresh_ && starts_group()) return;
        fresh_ = false;
        if (level.part < level.form->parts.size()) {
            const Part& part = level.form->parts[level.part];
            if (part.inner == nullptr) return;
            enter(part, 0);
            continue;
        }
        level.part = 0;
        if (++level.repetition < level.count) {
            fresh_ = true;
            continue;
        }
        levels_.pop_back();
        ++levels_.back().part;
    }
}

// Several repetitions of a flat form go together where that makes fewer sets.
bool RowWalk::starts_group() {
    Level& level = levels_.back();
    const Form& form = *level.form;
    if (!form.flat) return false;
    const Bytes count = std::min(level.count - level.repetition, left_ / level.width);
    if (count < 2) return false;
    const bool boxes = sets_ == Sets::boxes && repetitions_are_boxes(form, level.stride);
    const bool fewer = form.runs < count * form.parts.size();
    if (!boxes && !(fewer && repetitions_are_rows(form, level.stride))) return false;
    group_ = {&form, level.base(), static_cast<Bytes>(level.stride), level.width, count, boxes};
    level.repetition += count;
    return true;
}

Rows RowWalk::next_of_group() {
    const Part& part = group_.form->parts[group_.part];
    Rows rows{.offset = group_.base + part.offset_of(group_.run),
              .packed = packed_ + part.packed + group_.run * part.width,
              .width = part.width,
              .count = group_.count,
              .pitch = group_.pitch,
              .packed_pitch = group_.width};
    if (group_.boxes && part.count > 1) {
        rows.planes = rows.count;
        rows.plane_pitch = rows.pitch;
        rows.packed_plane_pitch = rows.packed_pitch;
        rows.count = part.count;
        rows.pitch = static_cast<Bytes>(part.stride);
        rows.packed_pitch = part.width;
    }
    group_.run += group_.boxes ? part.count : 1;
    if (group_.run < part.count) return rows;
    group_.run = 0;
    if (++group_.part < group_.form->parts.size()) return rows;
    packed_ += group_.count * group_.width;
    group_.form = nullptr;
    Level& level = levels_.back();
    if (level.repetition == level.count) {
        levels_.pop_back();
        ++levels_.back().part;
        fresh_ = false;
    } else {
        fresh_ = true;
    }
    return rows;
}

// Whole rows, as many as there are, or what is left of one.
Rows RowWalk::next_of_part() {
    Level& level = levels_.back();
    const Part& part = level.form->parts[level.part];
    // A whole part needs no divisions, which are the dearest of a short one.
    const bool whole = at_ == 0 && left_ >= part.bytes();
    const Bytes row = whole ? 0 : at_ / part.width, column = whole ? 0 : at_ % part.width;
    Rows rows{.offset = level.base() + part.offset_of(row) + static_cast<std::ptrdiff_t>(column),
              .packed = packed_,
              .width = part.width,
              .count = whole ? part.count : std::min(part.count - row, left_ / part.width),
              .pitch = static_cast<Bytes>(part.stride),
              .packed_pitch = part.width};
    if (column > 0 || rows.count == 0) {
        rows.count = 1;
        rows.width = std::min(part.width - column, left_);
    } else if (rows.count > 1 && !is_pitch(part.stride, part.width)) {
        rows.count = 1;
    }
    at_ += rows.bytes();
    packed_ += rows.bytes();
    if (at_ == part.bytes()) {
        at_ = 0;
        ++level.part;
    }
    return rows;
}

}  // namespace gantry::layout
