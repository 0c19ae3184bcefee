// SPDX-License-Identifier: BSD-3-Clause
//
// FakeDevice's copies of several blocks in one launch.
#include "device/fake/device.hpp"

#include <cstring>
#include <utility>

namespace gantry::device::fake {

using model::Operation;

// What fails, or is lost, is the whole.
void FakeDevice::copy_parts(const Copy& copy, Completion& done) {
    if (launches_ == Launches::none)
        return done.complete(
            failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake copies: there are no launches"));
    ++in_flight_;
    if (copy.engine == Engine::kernel) return copy_rows_of(copy, copy.parts, done);
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
    for (const CopyPart& part : copy.parts) {
        const Result<Place> from = place(part.source, part.bytes);
        const Result<Place> to = place(part.destination, part.bytes);
        Copy each = copy;
        each.destination = part.destination;
        each.source = part.source;
        each.bytes = part.bytes;
        if (status.ok() && !from.ok()) status = from.status().with("fake copy");
        if (status.ok() && !to.ok()) status = to.status().with("fake copy");
        if (status.ok()) status = fault_of(each);
        if (!from.ok() || !to.ok()) continue;
        ready.push_back({to.value().bytes, from.value().bytes, part.bytes});
        all += part.bytes;
        if (from.value().gpu != to.value().gpu) outwards += part.bytes;
    }
    model::Interval interval = reserve(copy.gpu, {Operation::kernel, all, 1, 256});
    interval.end += gpu.peer.rate.time(outwards) + gpu.d2d.rate.time(all - outwards);
    if (hangs(interval.end)) return never_end_.push_back(&done);
    gpus_.timeline().at(interval.end, [this, ready = std::move(ready), &done, status] {
        if (dead_) return never_end_.push_back(&done);
        for (const Ready& each : ready) {
            gpus_.timeline().note(static_cast<std::uint64_t>(rank_), each.bytes);
            if (status.ok()) std::memmove(each.to, each.from, each.bytes);
        }
        finish({&done, status, -1, true});
    });
}

}  // namespace gantry::device::fake
