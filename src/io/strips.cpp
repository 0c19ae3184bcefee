// SPDX-License-Identifier: BSD-3-Clause
#include "io/strips.hpp"

#include <algorithm>

namespace gantry::io {
namespace {

std::int64_t signed_bytes(Bytes bytes) {
    return static_cast<std::int64_t>(bytes);
}

void add(std::vector<Interval>& intervals, Interval one, std::int64_t gap) {
    if (!intervals.empty() && one.begin >= intervals.back().begin &&
        one.begin - intervals.back().end <= gap)
        intervals.back().end = std::max(intervals.back().end, one.end);
    else
        intervals.push_back(one);
}

}  // namespace

void add_run(std::vector<Strip>& strips, std::int64_t offset, Bytes bytes) {
    if (!strips.empty()) {
        Strip& last = strips.back();
        const std::int64_t first_of_last = last.offset + signed_bytes(last.count - 1) * last.stride;
        if (last.bytes == bytes) {
            const std::int64_t distance = offset - first_of_last;
            // A distance of less than a run would be an overlap: those stay apart.
            if (distance >= signed_bytes(bytes) && (last.count == 1 || distance == last.stride)) {
                last.stride = distance;
                ++last.count;
                return;
            }
        }
    }
    strips.push_back({offset, bytes, 1, 0});
}

namespace {

// Where runs of rising offsets begin, and the end: each rank's are one.
std::vector<std::ptrdiff_t> rising_runs(const std::vector<Interval>& intervals) {
    std::vector<std::ptrdiff_t> begins{0};
    for (std::size_t i = 1; i < intervals.size(); ++i)
        if (intervals[i].begin < intervals[i - 1].begin)
            begins.push_back(static_cast<std::ptrdiff_t>(i));
    begins.push_back(static_cast<std::ptrdiff_t>(intervals.size()));
    return begins;
}

// A sort would look at every interval many times, and there may be as many as runs.
void sort_rising_runs(std::vector<Interval>& intervals) {
    std::vector<std::ptrdiff_t> begins = rising_runs(intervals);
    const auto by_begin = [](const Interval& a, const Interval& b) { return a.begin < b.begin; };
    while (begins.size() > 2) {
        std::vector<std::ptrdiff_t> fewer;
        std::size_t i = 0;
        for (; i + 2 < begins.size(); i += 2) {
            const auto first = intervals.begin();
            std::inplace_merge(first + begins[i], first + begins[i + 1], first + begins[i + 2],
                               by_begin);
            fewer.push_back(begins[i]);
        }
        for (; i < begins.size(); ++i)
            fewer.push_back(begins[i]);
        begins = std::move(fewer);
    }
}

}  // namespace

std::vector<Interval> merged(std::vector<Interval> intervals, std::int64_t gap) {
    sort_rising_runs(intervals);
    std::vector<Interval> all;
    for (const Interval& each : intervals) {
        if (!all.empty() && each.begin - all.back().end <= gap)
            all.back().end = std::max(all.back().end, each.end);
        else
            all.push_back(each);
    }
    return all;
}

Bytes StripReader::take(std::int64_t end, std::int64_t origin, layout::FormBuilder* form,
                        std::vector<Interval>* intervals, std::int64_t gap) {
    Bytes taken = 0;
    const auto note = [&](std::int64_t offset, Bytes bytes, Bytes count, std::int64_t stride) {
        taken += bytes * count;
        if (form != nullptr)
            form->add(
                {.offset = offset - origin, .width = bytes, .count = count, .stride = stride});
        if (intervals == nullptr) return;
        const std::int64_t run = signed_bytes(bytes);
        if (count > 1 && stride - run <= gap) {
            add(*intervals, {offset, offset + signed_bytes(count - 1) * stride + run}, gap);
            return;
        }
        for (Bytes i = 0; i < count; ++i) {
            const std::int64_t begin = offset + signed_bytes(i) * stride;
            add(*intervals, {begin, begin + run}, gap);
        }
    };
    while (at_ < strips_.size()) {
        Strip& strip = strips_[at_];
        const std::int64_t begin = strip.offset + signed_bytes(skipped_);
        if (begin >= end) break;
        const std::int64_t run_end = strip.offset + signed_bytes(strip.bytes);
        Bytes runs = 1;
        if (run_end > end) {
            note(begin, static_cast<Bytes>(end - begin), 1, 0);
            skipped_ += static_cast<Bytes>(end - begin);
            break;
        }
        if (skipped_ > 0) {
            note(begin, strip.bytes - skipped_, 1, 0);
            skipped_ = 0;
        } else {
            if (strip.count > 1)
                runs =
                    std::min(strip.count, static_cast<Bytes>((end - run_end) / strip.stride) + 1);
            note(strip.offset, strip.bytes, runs, strip.stride);
        }
        strip.offset += signed_bytes(runs) * strip.stride;
        strip.count -= runs;
        if (strip.count == 0) ++at_;
    }
    return taken;
}

}  // namespace gantry::io
