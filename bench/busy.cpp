// SPDX-License-Identifier: BSD-3-Clause
#include "busy.hpp"

#include "base/units.hpp"

namespace gantry::bench {
namespace {

// About 5 us of an H200 each, and less than that to launch: the queue never runs dry.
constexpr Bytes kFillBytes = 16 * kMiB;
constexpr int kFillsPerBatch = 16;
// The thread sleeps while it waits: it must not take the rank's processor.
constexpr unsigned kBlockingWithoutTiming = 1 | 2;

}  // namespace

Busy::Busy() {
    Driver& cuda = driver();
    cuda.check(cuda.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    cuda.check(cuda.cuMemAlloc_v2(&memory_, kFillBytes), "cuMemAlloc", kFillBytes);
    for (int batch = 0; batch < kBatches; ++batch) {
        cuda.check(cuda.cuEventCreate(&done_[batch], kBlockingWithoutTiming), "cuEventCreate");
        queue(batch);
    }
    thread_ = std::thread([this] { run(); });
}

void Busy::queue(int batch) {
    Driver& cuda = driver();
    for (int i = 0; i < kFillsPerBatch; ++i)
        cuda.check(
            cuda.cuMemsetD32Async(memory_, static_cast<unsigned>(i), kFillBytes / 4, stream_),
            "cuMemsetD32Async", kFillBytes);
    cuda.check(cuda.cuEventRecord(done_[batch], stream_), "cuEventRecord");
}

void Busy::run() {
    Driver& cuda = driver();
    cuda.use_here();
    for (int batch = 0; !over_; batch = (batch + 1) % kBatches) {
        cuda.check(cuda.cuEventSynchronize(done_[batch]), "cuEventSynchronize");
        queue(batch);
    }
}

Busy::~Busy() {
    over_ = true;
    thread_.join();
    Driver& cuda = driver();
    cuda.cuStreamSynchronize(stream_);
    for (CUevent event : done_)
        cuda.cuEventDestroy_v2(event);
    cuda.cuStreamDestroy_v2(stream_);
    cuda.cuMemFree_v2(memory_);
}

}  // namespace gantry::bench
