// SPDX-License-Identifier: BSD-3-Clause
#include "io/strips.hpp"

#include <algorithm>

namespace gantry::io {
namespace {

std::int64_t signed_bytes(Bytes bytes) {
    return static_cast<std::int64_t>(bytes);
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

std::vector<Interval> merged(std::vector<Interval> intervals, std::int64_t gap) {
    std::ranges::sort(intervals, {}, &Interval::begin);
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
                        std::vector<Interval>* intervals) {
    Bytes taken = 0;
    const auto note = [&](std::int64_t offset, Bytes bytes, Bytes count, std::int64_t stride) {
        taken += bytes * count;
        if (form != nullptr)
            form->add(
                {.offset = offset - origin, .width = bytes, .count = count, .stride = stride});
        if (intervals == nullptr) return;
        for (Bytes i = 0; i < count; ++i)
            intervals->push_back({offset + signed_bytes(i) * stride,
                                  offset + signed_bytes(i) * stride + signed_bytes(bytes)});
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
