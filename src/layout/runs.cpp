// SPDX-License-Identifier: BSD-3-Clause
#include "layout/runs.hpp"

#include <algorithm>
#include <limits>

namespace gantry::layout {
namespace {

// Elements that adjoin, wherever the first one begins.
bool is_one_run(const Layout& layout) {
    return layout.one_run && layout.extent == static_cast<std::ptrdiff_t>(layout.size);
}

// Where the first and the last run of something begin; whether all begin in order; and whether they
// stay apart as well.
struct Starts {
    std::ptrdiff_t first = 0, last = 0;
    std::ptrdiff_t end = 0;  // of the last one
    bool rise = true, apart = true;
};

Starts repeated_starts(Starts one, Bytes count, std::ptrdiff_t stride) {
    if (count < 2) return one;
    const std::ptrdiff_t reach = static_cast<std::ptrdiff_t>(count - 1) * stride;
    one.rise = one.rise && one.first + stride >= one.last;
    one.apart = one.apart && one.first + stride >= one.end;
    one.last += reach;
    one.end += reach;
    return one;
}

Starts starts_of(const Form& form) {
    Starts all;
    bool is_first = true;
    for (const Part& part : form.parts) {
        Starts some;
        if (part.inner != nullptr)
            some = starts_of(*part.inner);
        else
            some.end = static_cast<std::ptrdiff_t>(part.width);
        some = repeated_starts(some, part.count, part.stride);
        for (std::ptrdiff_t* place : {&some.first, &some.last, &some.end})
            *place += part.offset;
        if (is_first) {
            all = some;
            is_first = false;
            continue;
        }
        all.rise = all.rise && some.rise && some.first >= all.last;
        all.apart = all.apart && some.apart && some.first >= all.end;
        all.last = some.last;
        all.end = some.end;
    }
    return all;
}

// Two elements say it of any number.
Starts starts_of(const Layout& layout, Elements elements) {
    if (layout.form == nullptr) return {};
    return repeated_starts(starts_of(*layout.form), elements == Elements::one ? 1 : 2,
                           layout.extent);
}

}  // namespace

RunWalk::RunWalk(const Layout& layout, Bytes first, Bytes bytes)
    : left_(layout.size > 0 ? bytes : 0) {
    if (left_ == 0) return;
    if (is_one_run(layout)) {
        ahead_ = {layout.first + static_cast<std::ptrdiff_t>(first), left_};
        left_ = 0;
        return;
    }
    levels_.push_back({layout.form.get(), 0, layout.extent, std::numeric_limits<Bytes>::max(),
                       first / layout.size});
    seek(first % layout.size);
}

// To that place in the last level's repetition.
void RunWalk::seek(Bytes first) {
    while (first > 0) {
        Level& level = levels_.back();
        const std::vector<Part>& parts = level.form->parts;
        const auto behind = std::ranges::upper_bound(parts, first, {}, &Part::packed);
        level.part = static_cast<std::size_t>(behind - parts.begin()) - 1;
        const Part& part = parts[level.part];
        first -= part.packed;
        if (part.inner == nullptr) {
            run_ = first / part.width;
            at_ = first % part.width;
            return;
        }
        enter(part, first / part.width);
        first %= part.width;
    }
}

void RunWalk::enter(const Part& part, Bytes repetition) {
    levels_.push_back({part.inner.get(), levels_.back().base() + part.offset, part.stride,
                       part.count, repetition});
}

// To the next part that repeats runs.
void RunWalk::go_down() {
    while (true) {
        Level& level = levels_.back();
        if (level.part < level.form->parts.size()) {
            const Part& part = level.form->parts[level.part];
            if (part.inner == nullptr) return;
            enter(part, 0);
            continue;
        }
        level.part = 0;
        if (++level.repetition < level.count) continue;
        levels_.pop_back();
        ++levels_.back().part;
    }
}

bool RunWalk::next_single(Block& run) {
    if (left_ == 0) return false;
    go_down();
    Level& level = levels_.back();
    const Part& part = level.form->parts[level.part];
    run = {level.base() + part.offset_of(run_) + static_cast<std::ptrdiff_t>(at_),
           std::min(part.width - at_, left_)};
    left_ -= run.bytes;
    at_ = 0;
    if (++run_ == part.count) {
        run_ = 0;
        ++level.part;
    }
    return true;
}

bool RunWalk::next(Block& run) {
    if (ahead_.bytes == 0 && !next_single(ahead_)) return false;
    run = ahead_;
    ahead_.bytes = 0;
    while (next_single(ahead_)) {
        if (ahead_.offset != run.offset + static_cast<std::ptrdiff_t>(run.bytes)) return true;
        run.bytes += ahead_.bytes;
        ahead_.bytes = 0;
    }
    return true;
}

std::ptrdiff_t offset_of(const Layout& layout, Bytes data_byte) {
    RunWalk walk(layout, data_byte, 1);
    Block run;
    return walk.next(run) ? run.offset : 0;
}

bool never_falls(const Layout& layout, Elements elements) {
    return starts_of(layout, elements).rise;
}

bool overlaps(const Layout& layout, Elements elements) {
    return !starts_of(layout, elements).apart;
}

}  // namespace gantry::layout
