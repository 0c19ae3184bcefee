// SPDX-License-Identifier: BSD-3-Clause
#include "layout/form.hpp"

#include "layout/pitch.hpp"

#include <algorithm>
#include <utility>

namespace gantry::layout {
namespace {

// A form of so few parts is taken over part by part, and more stay together.
constexpr std::size_t kFewParts = 4;
// A nest of so few parts is listed, or of so few parts and runs: nothing is gone through as quickly as
// runs.
constexpr Bytes kShortList = 8;
constexpr Bytes kLongList = 32, kFewRuns = 64;

std::ptrdiff_t end_of_last_run(const Part& part) {
    return part.offset_of(part.count - 1) + static_cast<std::ptrdiff_t>(part.width);
}

// Wraps around where no data can be.
std::ptrdiff_t distance(Bytes repetitions, std::ptrdiff_t stride) {
    return static_cast<std::ptrdiff_t>(repetitions * static_cast<Bytes>(stride));
}

Part shifted(Part part, std::ptrdiff_t offset) {
    part.offset += offset;
    return part;
}

void widen(Span& span, bool first, std::ptrdiff_t low, std::ptrdiff_t high) {
    span = first ? Span{low, high} : Span{std::min(span.low, low), std::max(span.high, high)};
}

Bytes runs_of(const Part& part) {
    return part.count * (part.inner != nullptr ? part.inner->runs : 1);
}

// Parts without packed offsets as a form.
Form summed_up(std::vector<Part> parts) {
    Form form;
    for (Part& part : parts) {
        const bool first = form.size == 0;
        part.packed = form.size;
        form.size += part.bytes();
        form.runs += runs_of(part);
        form.flat = form.flat && part.inner == nullptr;
        const Span one = part.inner != nullptr ? part.inner->span
                                               : Span{0, static_cast<std::ptrdiff_t>(part.width)};
        const std::ptrdiff_t last = part.offset_of(part.count - 1);
        widen(form.span, first, std::min(part.offset, last) + one.low,
              std::max(part.offset, last) + one.high);
        const Bytes widest = part.inner != nullptr ? part.inner->widest : part.width;
        const Bytes narrowest = part.inner != nullptr ? part.inner->narrowest : part.width;
        form.widest = std::max(form.widest, widest);
        form.narrowest = first ? narrowest : std::min(form.narrowest, narrowest);
    }
    form.parts = std::move(parts);
    return form;
}

bool is_short(const std::vector<Part>& parts) {
    Bytes listed = 0, runs = 0;
    for (const Part& part : parts) {
        if (part.inner != nullptr && (!part.inner->flat || part.count > kLongList)) return false;
        listed += part.inner != nullptr ? part.count * part.inner->parts.size() : 1;
        runs += runs_of(part);
    }
    return listed <= kShortList || (listed <= kLongList && runs <= kFewRuns);
}

FormPtr form_of(std::vector<Part> parts) {
    const bool flat = std::ranges::all_of(parts, [](const Part& p) { return p.inner == nullptr; });
    if (flat || !is_short(parts)) return std::make_shared<const Form>(summed_up(std::move(parts)));
    FormBuilder list;
    for (const Part& part : parts) {
        if (part.inner == nullptr) {
            list.add(part);
            continue;
        }
        for (Bytes repetition = 0; repetition < part.count; ++repetition)
            for (const Part& inner : part.inner->parts)
                list.add(shifted(inner, part.offset_of(repetition)));
    }
    return list.finish();
}

// One part that is several repetitions of a form with one part.
Part repeated_part(const Part& part, Bytes count, std::ptrdiff_t stride) {
    Part whole = part;
    if (part.count == 1) {
        whole.count = count;
        whole.stride = stride;
        if (part.inner == nullptr && stride == static_cast<std::ptrdiff_t>(part.width)) {
            whole.width = part.width * count;
            whole.count = 1;
            whole.stride = 0;
        }
    } else if (stride == distance(part.count, part.stride)) {
        whole.count = part.count * count;
    } else {
        Part one = part;
        one.offset = 0;
        whole.width = part.bytes();
        whole.count = count;
        whole.stride = stride;
        whole.inner = form_of({one});
    }
    return whole;
}

}  // namespace

FormPtr repeated(const FormPtr& form, Bytes count, std::ptrdiff_t stride) {
    if (form == nullptr || count == 0) return nullptr;
    if (count == 1) return form;
    if (form->parts.size() == 1) return form_of({repeated_part(form->parts[0], count, stride)});
    return form_of({Part{0, 0, form->size, count, stride, form}});
}

void FormBuilder::add(std::ptrdiff_t offset, const FormPtr& form, Bytes count,
                      std::ptrdiff_t stride) {
    const FormPtr whole = repeated(form, count, stride);
    if (whole == nullptr) return;
    if (whole->parts.size() > kFewParts)
        parts_.push_back({offset, 0, whole->size, 1, 0, whole});
    else
        for (const Part& part : whole->parts)
            add(shifted(part, offset));
}

void FormBuilder::add(const Part& part) {
    if (part.inner != nullptr) {
        parts_.push_back(part);
    } else if (part.count <= 2) {
        // Two may be anything: which rows they belong to shows with what follows.
        for (Bytes run = 0; run < part.count; ++run)
            add_run(part.offset_of(run), part.width);
    } else if (!joins_last(part)) {
        Part rest = part;
        if (!parts_.empty() && parts_.back().inner == nullptr &&
            end_of_last_run(parts_.back()) == part.offset) {
            add_run(part.offset, part.width);
            rest.offset += part.stride;
            --rest.count;
        }
        parts_.push_back(rest);
    }
}

// Rows that go on where the last ones end.
bool FormBuilder::joins_last(const Part& part) {
    if (parts_.empty()) return false;
    Part& last = parts_.back();
    if (last.inner != nullptr || last.width != part.width ||
        part.offset - last.offset != distance(last.count, part.stride) ||
        (last.count > 1 && last.stride != part.stride) ||
        part.stride == static_cast<std::ptrdiff_t>(part.width))
        return false;
    last.stride = part.stride;
    last.count += part.count;
    return true;
}

void FormBuilder::add_run(std::ptrdiff_t offset, Bytes bytes) {
    if (parts_.empty() || parts_.back().inner != nullptr ||
        end_of_last_run(parts_.back()) != offset) {
        parts_.push_back({offset, 0, bytes});
    } else {
        if (Part& last = parts_.back(); last.count > 1) {
            const Part run{last.offset_of(last.count - 1), 0, last.width};
            if (--last.count == 1) last.stride = 0;
            parts_.push_back(run);
        }
        parts_.back().width += bytes;
    }
    join_neighbours();
}

// The last run and the one or the rows before, if they are as wide.
void FormBuilder::join_neighbours() {
    if (parts_.size() < 2) return;
    const Part run = parts_.back();
    Part& rows = parts_[parts_.size() - 2];
    const std::ptrdiff_t apart = run.offset - rows.offset_of(rows.count - 1);
    if (rows.inner != nullptr || rows.width != run.width || !is_pitch(apart, run.width)) return;
    if (rows.count > 1 && rows.stride != apart) return;
    rows.stride = apart;
    ++rows.count;
    parts_.pop_back();
}

FormPtr FormBuilder::finish() {
    if (parts_.empty()) return nullptr;
    if (const Part& only = parts_[0];
        parts_.size() == 1 && only.inner != nullptr && only.count == 1 && only.offset == 0) {
        const FormPtr form = only.inner;
        parts_.clear();
        return form;
    }
    std::vector<Part> parts = std::exchange(parts_, {});
    parts.shrink_to_fit();
    return form_of(std::move(parts));
}

}  // namespace gantry::layout
