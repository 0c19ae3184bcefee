// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/together.hpp"

#include "device/cuda/context.hpp"
#include "device/kernels/copy_many.hpp"
#include "device/kernels/images.hpp"

#include <mpi.h>

#include <algorithm>
#include <utility>

namespace gantry::device::cuda {
namespace {

// A block moves this much before another one helps it.
constexpr Bytes kBytesPerPart = 8 * kKiB;
// More blocks than these only wait for each other.
constexpr std::size_t kMostParts = 32, kEnoughBlocks = 128;
// Large copies want more loads in flight.
constexpr unsigned kWideThreads = 512;
constexpr Bytes kWideFrom = 128 * kKiB;

unsigned parts_of(std::span<const CopyPart> copies, std::size_t flags) {
    Bytes largest = 0;
    for (const CopyPart& copy : copies)
        largest = std::max(largest, copy.bytes);
    const std::size_t most =
        std::min({kMostParts, std::max<std::size_t>(kEnoughBlocks / copies.size(), 1),
                  flags / copies.size()});
    return static_cast<unsigned>(
        std::clamp<Bytes>(divide_up(largest, kBytesPerPart), 1, static_cast<Bytes>(most)));
}

}  // namespace

TogetherCopies::TogetherCopies(Driver& driver, const Context& context, const CopySettings& settings,
                               ResidentCopies& resident)
    : driver_(driver),
      context_(context),
      flags_(driver, kBatches * kFlags, kernels::kFlagBytes, settings.kernels),
      module_(driver, settings.kernels),
      resident_(resident) {
    for (std::size_t i = 0; i < kBatches; ++i)
        batches_[i].first_flag = i * kFlags;
}

bool TogetherCopies::pending() const {
    return taken_.pending() ||
           std::any_of(batches_.begin(), batches_.end(),
                       [](const Batch& batch) { return batch.done != nullptr; });
}

TogetherCopies::TakenJob TogetherCopies::Taken::take() {
    TakenJob job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
}

void TogetherCopies::Taken::tell(const Status& status) {
    ++ended_;
    take().done->complete(status);
}

// Copies that were made already are made once more, which does no harm.
void TogetherCopies::start_again(TakenJob job) {
    if (launch_all(job.copy, job.parts, *job.done)) return;
    job.done->complete(
        failure(MPI_ERR_UNSUPPORTED_OPERATION, "copies together: no launch takes them now"));
}

bool TogetherCopies::prepare() {
    if (module_.wanted() && !flags_.ready())
        module_.give_up("flags", CUDA_ERROR_NOT_SUPPORTED, context_.gpu);
    return module_.load(kernels::copy_many(),
                        {{"gantry_copy_many", &many_}, {"gantry_copy_few", &few_}}, context_.gpu);
}

bool TogetherCopies::start(const Copy& copy, Completion& done) {
    const std::span<const CopyPart> copies = copy.parts;
    Copy all = copy;
    all.parts = {};
    const bool suits = ResidentCopies::suits(copies);
    if (suits && !lost_ && resident_.take_parts(all, copies, taken_)) {
        taken_.add(all, copies, done);
        return true;
    }
    if (!launch_all(all, copies, done)) return false;
    if (suits) resident_.consider(Ends::devices, Copies::alone);
    return true;
}

bool TogetherCopies::launch_all(const Copy& copy, std::span<const CopyPart> copies,
                                Completion& done) {
    if (lost_ || !module_.wanted() || copies.empty() || copies.size() > kFlags) return false;
    const auto free = std::find_if(batches_.begin(), batches_.end(),
                                   [](const Batch& batch) { return batch.done == nullptr; });
    if (free == batches_.end()) return false;
    Batch& batch = *free;
    const Current current(driver_, context_);
    CUresult result = current.result();
    if (result == CUDA_SUCCESS && !prepare()) return false;
    if (result == CUDA_SUCCESS && batch.stream == nullptr) {
        result = create_stream(driver_, batch.stream);
        if (result != CUDA_SUCCESS) batch.stream = nullptr;
    }
    if (result == CUDA_SUCCESS) {
        ++batch.sequence;
        batch.raised = 0;
        batch.copy = copy;
        batch.doubt.reset();
        const unsigned parts = parts_of(copies, kFlags);
        batch.flags = copies.size() * parts;
        result = launch(batch, copies, parts);
    }
    if (result == CUDA_SUCCESS) {
        batch.done = &done;
        return true;
    }
    if (is_lost(result) || result == CUDA_ERROR_INVALID_HANDLE) lost_ = true;
    return false;
}

// In as many launches as their parameters need. One behind a launch that was made fails the whole only
// at its end: a stream in which a launch was refused is waited for.
CUresult TogetherCopies::launch(Batch& batch, std::span<const CopyPart> copies, unsigned parts) {
    for (std::size_t at = 0; at < copies.size(); at += kernels::kCopiesPerLaunch) {
        const auto group = copies.subspan(
            at, std::min<std::size_t>(kernels::kCopiesPerLaunch, copies.size() - at));
        const std::size_t flag = batch.first_flag + at * parts;
        const CUresult result =
            group.size() <= kernels::kFewCopies
                ? launch_as<kernels::CopyFew>(few_, batch, group, flag, parts)
                : launch_as<kernels::CopyMany>(many_, batch, group, flag, parts);
        if (result == CUDA_SUCCESS) continue;
        if (at > 0) driver_.call(driver_.cu.cuStreamSynchronize, batch.stream);
        module_.give_up("cuLaunchKernel", result, context_.gpu);
        return result;
    }
    return CUDA_SUCCESS;
}

template <class Work>
CUresult TogetherCopies::launch_as(CUfunction kernel, const Batch& batch,
                                   std::span<const CopyPart> copies, std::size_t first_flag,
                                   unsigned parts) {
    Work work{};  // the driver copies all of it: no stale addresses in it
    Bytes largest = 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        work.copy[i] = {device_address(copies[i].destination), device_address(copies[i].source),
                        copies[i].bytes};
        largest = std::max(largest, copies[i].bytes);
    }
    work.flags = flags_.address(first_flag);
    work.sequence = batch.sequence;
    work.parts = parts;
    work.copies = copies.size();
    void* parameters[] = {&work};
    const unsigned threads = largest >= kWideFrom ? kWideThreads : kernels::kCopyThreads;
    return driver_.call(driver_.cu.cuLaunchKernel, kernel,
                        static_cast<unsigned>(copies.size()) * parts, 1u, 1u, threads, 1u, 1u, 0u,
                        batch.stream, static_cast<void**>(parameters),
                        static_cast<void**>(nullptr));
}

bool TogetherCopies::has_ended(Batch& batch) {
    while (batch.raised < batch.flags &&
           flags_.reached(batch.first_flag + batch.raised, batch.sequence))
        ++batch.raised;
    return batch.raised == batch.flags;
}

// By a call of the driver, when the flags do not show.
CUresult TogetherCopies::ask(Batch& batch) {
    const Current current(driver_, context_);
    if (!current.ok()) return current.result();
    return driver_.call(driver_.cu.cuStreamQuery, batch.stream);
}

void TogetherCopies::finish(Batch& batch, Status status) {
    std::exchange(batch.done, nullptr)->complete(std::move(status));
}

int TogetherCopies::progress() {
    int ended = taken_.take_ended();
    for (Batch& batch : batches_) {
        if (lost_ || batch.done == nullptr) continue;
        if (has_ended(batch)) {
            finish(batch, success());
            ++ended;
            continue;
        }
        if (!batch.doubt.is_due()) continue;
        const CUresult result = ask(batch);
        if (result == CUDA_ERROR_NOT_READY) continue;
        if (is_lost(result)) {
            abandon(result);
            return ended + 1;
        }
        Status status;
        if (result != CUDA_SUCCESS)
            status = driver_.failed("cuStreamQuery after copies", result, describe(batch.copy));
        finish(batch, std::move(status));
        ++ended;
    }
    return ended;
}

void TogetherCopies::abandon(CUresult why) {
    lost_ = true;
    flags_.abandon();
    module_.abandon();
    for (Batch& batch : batches_) {
        batch.stream = nullptr;
        if (batch.done != nullptr)
            finish(batch, driver_.failed("the context was destroyed during a copy", why,
                                         describe(batch.copy)));
    }
    while (taken_.pending())
        taken_.tell(failure(MPI_ERR_OTHER, "the context was destroyed during copies"));
}

void TogetherCopies::close() {
    for (Batch& batch : batches_) {
        if (lost_ || batch.stream == nullptr) continue;
        if (batch.done != nullptr) {
            driver_.call(driver_.cu.cuStreamSynchronize, batch.stream);
            finish(batch, success());
        }
        driver_.call(driver_.cu.cuStreamDestroy_v2, std::exchange(batch.stream, nullptr));
    }
    if (lost_) return;
    module_.close();
    flags_.close();
    lost_ = true;
}

}  // namespace gantry::device::cuda
