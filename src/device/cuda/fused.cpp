// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/fused.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "device/cuda/copies.hpp"
#include "device/kernels/copy_many.hpp"
#include "device/kernels/images.hpp"

#include <algorithm>
#include <utility>

namespace gantry::device::cuda {
namespace {

// A block moves this much before another one helps it.
constexpr Bytes kBytesPerPart = 8 * kKiB;
constexpr unsigned kMaxParts = 8;
constexpr std::size_t kFlagCount = static_cast<std::size_t>(kernels::kCopiesPerLaunch) * kMaxParts;

}  // namespace

FusedCopies::FusedCopies(Driver& driver, const Context& context, bool kernels, bool flags)
    : driver_(driver),
      context_(context),
      kernels_(kernels),
      copies_by_flag_(flags),
      flags_(driver, kFlagCount, kernels || flags) {}

FusedCopies::~FusedCopies() = default;

bool FusedCopies::start(const Copy& copy, Completion& done) {
    if (lost_) return false;
    waiting_.push_back({copy, &done});
    if (unfinished_ > 0 || waiting_.size() > 1) return true;
    if (start_waiting() == CUDA_SUCCESS) return true;
    waiting_.clear();
    return false;
}

// An answer other than success: the context is dead, and what waited still waits.
CUresult FusedCopies::start_waiting() {
    while (unfinished_ == 0 && !waiting_.empty()) {
        const Current current(driver_, context_);
        if (!current.ok()) return current.result();
        if (stream_ == nullptr) {
            const CUresult result =
                driver_.call(driver_.cu.cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
            if (is_lost(result)) return result;
            if (result != CUDA_SUCCESS) {
                fail_waiting(driver_.failed("cuStreamCreate for a copy", result,
                                            describe(waiting_.front().copy)));
                return CUDA_SUCCESS;
            }
        }
        const auto count = static_cast<std::ptrdiff_t>(
            std::min<std::size_t>(waiting_.size(), kernels::kCopiesPerLaunch));
        flying_.assign(waiting_.begin(), waiting_.begin() + count);
        first_ = 0;
        unfinished_ = flying_.size();
        looks_ = 0;
        next_query_ = 0;
        ++sequence_;
        if (count == 1 || !launch()) {
            const CUresult result = copy_one_by_one();
            if (result != CUDA_SUCCESS) {
                unfinished_ = 0;
                flying_.clear();
                return result;
            }
        }
        waiting_.erase(waiting_.begin(), waiting_.begin() + count);
    }
    return CUDA_SUCCESS;
}

bool FusedCopies::prepare_kernel() {
    if (kernel_ != nullptr || !kernels_) return kernels_;
    CUresult result = flags_.ready() ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
    if (result == CUDA_SUCCESS)
        result = driver_.call(driver_.cu.cuModuleLoadData, &module_,
                              static_cast<const void*>(kernels::copy_many_ptx()));
    if (result == CUDA_SUCCESS)
        result =
            driver_.call(driver_.cu.cuModuleGetFunction, &kernel_, module_, "gantry_copy_many");
    if (result != CUDA_SUCCESS) {
        log::info("cuda: no kernels on GPU {}: {}; copy engines do their work", context_.gpu,
                  result_name(result));
        kernels_ = false;
    }
    return kernels_;
}

// One launch for all of them; false when nothing was started.
bool FusedCopies::launch() {
    if (!prepare_kernel()) return false;
    const std::size_t count = flying_.size();
    kernels::CopyMany work{};  // the driver copies all of it: no stale addresses in it
    Bytes largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const Copy& copy = flying_[i].copy;
        work.copy[i] = {device_address(copy.destination), device_address(copy.source), copy.bytes};
        largest = std::max(largest, copy.bytes);
    }
    parts_ =
        static_cast<unsigned>(std::clamp<Bytes>(divide_up(largest, kBytesPerPart), 1, kMaxParts));
    work.flags = flags_.address(0);
    work.sequence = sequence_;
    work.parts = parts_;
    work.copies = count;
    void* parameters[] = {&work};
    const CUresult result =
        driver_.call(driver_.cu.cuLaunchKernel, kernel_, static_cast<unsigned>(count) * parts_, 1u,
                     1u, kernels::kCopyThreads, 1u, 1u, 0u, stream_,
                     static_cast<void**>(parameters), static_cast<void**>(nullptr));
    if (result != CUDA_SUCCESS) {
        log::info("cuda: cuLaunchKernel on GPU {}: {}; copy engines do its work", context_.gpu,
                  result_name(result));
        kernels_ = false;
        return false;
    }
    seen_ = Seen::flags;
    one_flag_ = false;
    recorded_ = false;
    return true;
}

// By the copy engine, and one flag behind them all.
CUresult FusedCopies::copy_one_by_one() {
    std::size_t started = 0;
    const bool by_flag = copies_by_flag_ && flying_.back().copy.notice == Notice::flag;
    for (std::size_t i = 0; i < flying_.size(); ++i) {
        const Copy& copy = flying_[i].copy;
        const CUresult result =
            driver_.call(driver_.cu.cuMemcpyDtoDAsync_v2, device_address(copy.destination),
                         device_address(copy.source), copy.bytes, stream_);
        if (result == CUDA_SUCCESS) {
            ++started;
            continue;
        }
        if (started == 0 && (is_lost(result) || result == CUDA_ERROR_INVALID_HANDLE)) return result;
        finish(i, driver_.failed("cuMemcpyDtoDAsync", result, describe(copy)));
    }
    one_flag_ = true;
    seen_ = by_flag && started > 0 && flags_.ready() && flags_.write(stream_, 0, sequence_)
                ? Seen::flags
                : Seen::query;
    recorded_ = seen_ == Seen::query && record();
    return CUDA_SUCCESS;
}

// Asking the stream instead made a lone message 0.5 to 0.8 us slower (two H200s, 8 B to 64 KiB).
bool FusedCopies::record() {
    if (behind_ == nullptr &&
        driver_.call(driver_.cu.cuEventCreate, &behind_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        behind_ = nullptr;
        return false;
    }
    return driver_.call(driver_.cu.cuEventRecord, behind_, stream_) == CUDA_SUCCESS;
}

void FusedCopies::finish(std::size_t index, Status status) {
    Completion* done = std::exchange(flying_[index].done, nullptr);
    if (done == nullptr) return;
    --unfinished_;
    done->complete(std::move(status));
}

void FusedCopies::fail_waiting(const Status& why) {
    std::deque<Item> waiting = std::exchange(waiting_, {});
    for (const Item& item : waiting)
        item.done->complete(why);
}

// By flags: a load each.
int FusedCopies::look() {
    const std::size_t before = unfinished_;
    if (one_flag_) {
        if (flags_.reached(0, sequence_))
            for (std::size_t i = 0; i < flying_.size(); ++i)
                finish(i, success());
    } else {
        // In order: the blocks of a launch start in order, so the rest is rarely done before the
        // first.
        for (; first_ < flying_.size(); ++first_) {
            bool all = true;
            for (unsigned part = 0; part < parts_ && all; ++part)
                all = flags_.reached(first_ * parts_ + part, sequence_);
            if (!all) break;
            finish(first_, success());
        }
    }
    return static_cast<int>(before - unfinished_);
}

// By a call of the driver: when there are no flags, or none shows.
int FusedCopies::ask() {
    const std::size_t before = unfinished_;
    const Current current(driver_, context_);
    if (!current.ok()) {
        abandon(current.result());
        return static_cast<int>(before);
    }
    CUresult result = recorded_ ? driver_.call(driver_.cu.cuEventQuery, behind_)
                                : driver_.call(driver_.cu.cuStreamQuery, stream_);
    if (result == CUDA_ERROR_NOT_READY) return 0;
    if (recorded_ && result != CUDA_SUCCESS &&
        !is_lost(result))  // the event's trouble or a copy's?
        result = driver_.call(driver_.cu.cuStreamQuery, stream_);
    if (result == CUDA_ERROR_NOT_READY) return 0;
    if (is_lost(result)) {
        abandon(result);
        return static_cast<int>(before);
    }
    const Status status =
        result == CUDA_SUCCESS
            ? success()
            : driver_.failed("cuStreamQuery after copies", result, describe(flying_[first_].copy));
    for (std::size_t i = 0; i < flying_.size(); ++i)
        finish(i, status);
    return static_cast<int>(before - unfinished_);
}

int FusedCopies::progress() {
    if (lost_ || unfinished_ == 0) return 0;
    int ended = seen_ == Seen::flags ? look() : ask();
    if (ended == 0 && seen_ == Seen::flags && ++looks_ % kLooksBetweenClocks == 0) {
        const Nanoseconds now = SteadyClock{}.now();
        if (next_query_ == 0) next_query_ = now + kDoubt;
        if (now >= next_query_) {
            next_query_ = now + kDoubt;
            ended = ask();
        }
    }
    if (!lost_ && unfinished_ == 0) {
        const CUresult result = start_waiting();
        if (result != CUDA_SUCCESS) abandon(result);
    }
    return ended;
}

void FusedCopies::abandon(CUresult why) {
    lost_ = true;
    flags_.abandon();
    stream_ = nullptr;
    behind_ = nullptr;
    module_ = nullptr;
    kernel_ = nullptr;
    for (std::size_t i = 0; i < flying_.size(); ++i)
        if (flying_[i].done != nullptr)
            finish(i, driver_.failed("the context was destroyed during a copy", why,
                                     describe(flying_[i].copy)));
    std::deque<Item> waiting = std::exchange(waiting_, {});
    for (const Item& item : waiting)
        item.done->complete(
            driver_.failed("the context was destroyed before a copy", why, describe(item.copy)));
}

void FusedCopies::close() {
    if (lost_) return;
    const Current current(driver_, context_);
    if (!current.ok()) return abandon(current.result());
    while (!lost_ && pending()) {
        driver_.call(driver_.cu.cuStreamSynchronize, stream_);
        const std::size_t before = unfinished_;
        progress();
        if (!lost_ && before > 0 && unfinished_ == before) ask();
    }
    if (lost_) return;
    lost_ = true;
    if (behind_ != nullptr) driver_.call(driver_.cu.cuEventDestroy_v2, behind_);
    if (stream_ != nullptr) driver_.call(driver_.cu.cuStreamDestroy_v2, stream_);
    if (module_ != nullptr) driver_.call(driver_.cu.cuModuleUnload, module_);
    flags_.close();
}

}  // namespace gantry::device::cuda
