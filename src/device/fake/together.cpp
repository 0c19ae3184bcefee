// SPDX-License-Identifier: BSD-3-Clause
//
// FakeDevice's copies of several blocks in one launch.
#include "device/fake/device.hpp"

#include <cstring>
#include <utility>

namespace gantry::device::fake {

using model::Operation;

// What fails, or is lost, is the whole.
bool FakeDevice::copy_together(std::span<const Copy> copies, Completion& done) {
    if (launches_ == Launches::none || copies.empty()) return false;
    ++in_flight_;
    ++counts_.launches;
    const model::Gpu& gpu = gpus_.machine().gpu;
    processor_.spend(gpu.calls.launch);
    struct Ready {
        std::byte* to;
        const std::byte* from;
        Bytes bytes;
    };
    std::vector<Ready> ready;
    Status status;
    Bytes all = 0, outwards = 0;
    for (const Copy& copy : copies) {
        const Result<Place> from = place(copy.source, copy.bytes);
        const Result<Place> to = place(copy.destination, copy.bytes);
        if (status.ok() && !from.ok()) status = from.status().with("fake copy");
        if (status.ok() && !to.ok()) status = to.status().with("fake copy");
        if (status.ok()) status = fault_of(copy);
        if (!from.ok() || !to.ok()) continue;
        ready.push_back({to.value().bytes, from.value().bytes, copy.bytes});
        all += copy.bytes;
        if (from.value().gpu != to.value().gpu) outwards += copy.bytes;
    }
    model::Interval interval = reserve(copies.front().gpu, {Operation::kernel, all, 1, 256});
    interval.end += gpu.peer.rate.time(outwards) + gpu.d2d.rate.time(all - outwards);
    if (hangs(interval.end)) {
        never_end_.push_back(&done);
        return true;
    }
    gpus_.timeline().at(interval.end, [this, ready = std::move(ready), &done, status] {
        if (dead_) return never_end_.push_back(&done);
        for (const Ready& each : ready) {
            gpus_.timeline().note(static_cast<std::uint64_t>(rank_), each.bytes);
            if (status.ok()) std::memmove(each.to, each.from, each.bytes);
        }
        finished_.push_back({&done, status, -1, true});
    });
    return true;
}

}  // namespace gantry::device::fake
