// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/fused.hpp"

#include "base/log.hpp"
#include "device/cuda/copies.hpp"
#include "device/kernels/copy_many.hpp"
#include "device/kernels/images.hpp"

#include <algorithm>
#include <utility>

namespace gantry::device::cuda {
namespace {

// A block moves this much before another one helps it; more blocks than fill the link only mean
// more flags to look at (two H200s, 20 and 63 copies of 64 KiB).
constexpr Bytes kBytesPerPart = 8 * kKiB;
constexpr unsigned kMaxParts = 8;
constexpr std::size_t kFlagsPerBatch =
    static_cast<std::size_t>(kernels::kCopiesPerLaunch) * kMaxParts;

}  // namespace

FusedCopies::FusedCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                         const CopySettings& settings, ResidentCopies& resident, Sizes sizes)
    : driver_(driver),
      context_(context),
      settings_(settings),
      gpu_(facts.uuid),
      takes_turns_(facts.queue_turn > 0),
      flags_(driver, 2 * kFlagsPerBatch, kernels::kFlagBytes, settings.kernels || settings.flags),
      module_(driver, settings.kernels && sizes == Sizes::small),
      waiting_(facts, sizes),
      resident_(resident),
      enough_blocks_(facts.launch_enough_blocks),
      one_call_(driver.cu.cuMemcpyBatchAsync.function != nullptr) {
    batches_[1].first_flag = kFlagsPerBatch;
}

FusedCopies::~FusedCopies() = default;

bool FusedCopies::flying() const {
    return batches_[0].unfinished > 0 || batches_[1].unfinished > 0;
}

FusedCopies::Batch* FusedCopies::free_batch() {
    for (Batch& batch : batches_)
        if (batch.unfinished == 0) return &batch;
    return nullptr;
}

bool FusedCopies::start(const Copy& copy, Completion& done) {
    if (lost_) return false;
    const bool suits_a_kernel =
        copy.bytes <= kMostFused || (copy.bytes <= kMostBetweenGpus && !pending());
    if (suits_a_kernel && resident_.take(copy, {Ends::devices}, Copies::alone, taken_)) {
        taken_.add(done);
        return true;
    }
    waiting_.push(copy, done);
    Batch* batch = free_batch();
    if (batch == nullptr || !waiting_.goes_at_once(flying(), launches())) return true;
    if (flush_batch(*batch) == CUDA_SUCCESS || waiting_.size() > 1) return true;
    waiting_.drop_first(1);
    return false;
}

void FusedCopies::flush_batch(BatchHint more) {
    if (lost_ || !waiting_.goes_after_all(flying(), more)) return;
    Batch* batch = free_batch();
    if (batch == nullptr) return;
    const CUresult result = flush_batch(*batch);
    if (result != CUDA_SUCCESS) abandon(result);
}

// An answer other than success: the context is dead, and what waited still waits.
CUresult FusedCopies::flush_batch(Batch& batch) {
    while (batch.unfinished == 0 && !waiting_.empty()) {
        const Current current(driver_, context_);
        if (!current.ok()) return current.result();
        if (batch.stream == nullptr) {
            const CUresult result = create_stream(driver_, batch.stream);
            if (is_lost(result)) return result;
            if (result != CUDA_SUCCESS) {
                batch.stream = nullptr;
                fail_waiting(driver_.failed("cuStreamCreate for a copy", result,
                                            describe(waiting_.first())));
                return CUDA_SUCCESS;
            }
        }
        const std::size_t count = waiting_.first_group(kernels::kCopiesPerLaunch);
        waiting_.copy_first(count, batch.items);
        batch.first = 0;
        batch.unfinished = batch.items.size();
        batch.doubt.reset();
        ++batch.sequence;
        if (count == 1 || !start_together(batch)) {
            const CUresult result = copy_one_by_one(batch);
            if (result != CUDA_SUCCESS) {
                batch.unfinished = 0;
                batch.items.clear();
                return result;
            }
        }
        waiting_.drop_first(count);
        if (batch.items.front().copy.bytes <= (count == 1 ? kMostBetweenGpus : kMostFused))
            resident_.consider(Ends::devices, Copies::alone);
    }
    return CUDA_SUCCESS;
}

// False when nothing of it was started: they go one by one.
bool FusedCopies::start_together(Batch& batch) {
    if ((suits_a_kernel(batch) || !one_call_) && launch(batch)) return true;
    if (!one_call_ || !copy_in_one_call(batch)) return false;
    watch(batch);
    return true;
}

// Above kMostFused a kernel is quicker where it moves 16 bytes at a time (both ends are multiples of
// that) and need not wait for a turn of the compute queue (copies from another GPU do not).
bool FusedCopies::suits_a_kernel(const Batch& batch) const {
    constexpr CUdeviceptr kAligned = 16;
    if (!module_.wanted()) return false;
    bool all_fused = true;
    for (const Item& item : batch.items) {
        const Copy& copy = item.copy;
        if (copy.bytes <= kMostFused) continue;
        all_fused = false;
        if ((device_address(copy.destination) | device_address(copy.source)) % kAligned != 0)
            return false;
    }
    return all_fused || !takes_turns_ || settings_.neighbours == nullptr ||
           !settings_.neighbours->use(gpu_);
}

// They may run at once and in any order, before what the stream gets next.
bool FusedCopies::copy_in_one_call(const Batch& batch) {
    constexpr std::size_t kMost = kernels::kCopiesPerLaunch;
    std::array<CUdeviceptr, kMost> to{}, from{};
    std::array<std::size_t, kMost> bytes{};
    const std::size_t count = batch.items.size();
    for (std::size_t i = 0; i < count; ++i) {
        const Copy& copy = batch.items[i].copy;
        to[i] = device_address(copy.destination);
        from[i] = device_address(copy.source);
        bytes[i] = copy.bytes;
    }
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    std::size_t of_all = 0, failed = 0;
    const CUresult result =
        driver_.call(driver_.cu.cuMemcpyBatchAsync, to.data(), from.data(), bytes.data(), count,
                     &attributes, &of_all, std::size_t{1}, &failed, batch.stream);
    if (result == CUDA_ERROR_NOT_SUPPORTED) one_call_ = false;
    if (result != CUDA_SUCCESS && !is_lost(result))
        log::info("cuda: {} copies in one call: cuMemcpyBatchAsync: {}; they go one by one", count,
                  result_name(result));
    return result == CUDA_SUCCESS;
}

bool FusedCopies::prepare_kernel() {
    if (module_.wanted() && !flags_.ready())
        module_.give_up("flags", CUDA_ERROR_NOT_SUPPORTED, context_.gpu);
    return module_.load(kernels::copy_many(),
                        {{"gantry_copy_many", &many_}, {"gantry_copy_few", &few_}}, context_.gpu);
}

template <class Work>
CUresult FusedCopies::launch_as(CUfunction kernel, const Batch& batch) {
    Work work{};  // the driver copies all of it: no stale addresses in it
    for (std::size_t i = 0; i < batch.items.size(); ++i) {
        const Copy& copy = batch.items[i].copy;
        work.copy[i] = {device_address(copy.destination), device_address(copy.source), copy.bytes};
    }
    work.flags = flags_.address(batch.first_flag);
    work.sequence = batch.sequence;
    work.parts = batch.parts;
    work.copies = batch.items.size();
    void* parameters[] = {&work};
    const unsigned blocks = static_cast<unsigned>(batch.items.size()) * batch.parts;
    return driver_.call(driver_.cu.cuLaunchKernel, kernel, blocks, 1u, 1u, kernels::kCopyThreads,
                        1u, 1u, 0u, batch.stream, static_cast<void**>(parameters),
                        static_cast<void**>(nullptr));
}

// One launch for all of them; false when nothing was started.
bool FusedCopies::launch(Batch& batch) {
    if (!prepare_kernel()) return false;
    const std::size_t count = batch.items.size();
    Bytes largest = 0;
    for (const Item& item : batch.items)
        largest = std::max(largest, item.copy.bytes);
    const Bytes most = std::clamp<Bytes>(enough_blocks_ / count, 1, kMaxParts);
    batch.parts =
        static_cast<unsigned>(std::clamp<Bytes>(divide_up(largest, kBytesPerPart), 1, most));
    const CUresult result = count <= kernels::kFewCopies
                                ? launch_as<kernels::CopyFew>(few_, batch)
                                : launch_as<kernels::CopyMany>(many_, batch);
    if (result != CUDA_SUCCESS) {
        module_.give_up("cuLaunchKernel", result, context_.gpu);
        return false;
    }
    batch.seen = Seen::flags;
    batch.one_flag = false;
    batch.recorded = false;
    return true;
}

// By the copy engine, and one flag behind them all.
CUresult FusedCopies::copy_one_by_one(Batch& batch) {
    std::size_t started = 0;
    for (std::size_t i = 0; i < batch.items.size(); ++i) {
        const Copy& copy = batch.items[i].copy;
        const CUresult result =
            driver_.call(driver_.cu.cuMemcpyDtoDAsync_v2, device_address(copy.destination),
                         device_address(copy.source), copy.bytes, batch.stream);
        if (result == CUDA_SUCCESS) {
            ++started;
            continue;
        }
        if (started == 0 && (is_lost(result) || result == CUDA_ERROR_INVALID_HANDLE)) {
            waiting_.drop_first(i);  // they have ended
            return result;
        }
        finish(batch, i, driver_.failed("cuMemcpyDtoDAsync", result, describe(copy)));
    }
    watch(batch);
    return CUDA_SUCCESS;
}

// One end for all that was called.
void FusedCopies::watch(Batch& batch) {
    const bool by_flag = settings_.flags && batch.items.back().copy.notice == Notice::flag;
    batch.one_flag = true;
    batch.seen = by_flag && batch.unfinished > 0 && flags_.ready() &&
                         flags_.write(batch.stream, batch.first_flag, batch.sequence)
                     ? Seen::flags
                     : Seen::query;
    batch.recorded = batch.seen == Seen::query && record(batch);
}

// Asking the stream instead made a lone message 0.5 to 0.8 us slower (two H200s, 8 B to 64 KiB).
bool FusedCopies::record(Batch& batch) {
    if (batch.behind == nullptr && driver_.call(driver_.cu.cuEventCreate, &batch.behind,
                                                CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
        batch.behind = nullptr;
        return false;
    }
    return driver_.call(driver_.cu.cuEventRecord, batch.behind, batch.stream) == CUDA_SUCCESS;
}

void FusedCopies::finish(Batch& batch, std::size_t index, Status status) {
    Completion* done = std::exchange(batch.items[index].done, nullptr);
    if (done == nullptr) return;
    --batch.unfinished;
    done->complete(std::move(status));
}

void FusedCopies::fail_waiting(const Status& why) {
    while (!waiting_.empty())
        waiting_.pop().done->complete(why);
}

// By flags: a load each.
int FusedCopies::look(Batch& batch) {
    const std::size_t before = batch.unfinished;
    if (batch.one_flag) {
        if (flags_.reached(batch.first_flag, batch.sequence))
            for (std::size_t i = 0; i < batch.items.size(); ++i)
                finish(batch, i, success());
    } else {
        // In order: the blocks of a launch start in order, so the rest is rarely done before the
        // first.
        for (; batch.first < batch.items.size(); ++batch.first) {
            bool all = true;
            for (unsigned part = 0; part < batch.parts && all; ++part)
                all = flags_.reached(batch.first_flag + batch.first * batch.parts + part,
                                     batch.sequence);
            if (!all) break;
            finish(batch, batch.first, success());
        }
    }
    return static_cast<int>(before - batch.unfinished);
}

// By a call of the driver: when there are no flags, or none shows.
int FusedCopies::ask(Batch& batch) {
    const std::size_t before = batch.unfinished;
    const Current current(driver_, context_);
    if (!current.ok()) {
        abandon(current.result());
        return static_cast<int>(before);
    }
    CUresult result = batch.recorded ? driver_.call(driver_.cu.cuEventQuery, batch.behind)
                                     : driver_.call(driver_.cu.cuStreamQuery, batch.stream);
    if (result == CUDA_ERROR_NOT_READY) return 0;
    if (batch.recorded && result != CUDA_SUCCESS &&
        !is_lost(result))  // the event's trouble or a copy's?
        result = driver_.call(driver_.cu.cuStreamQuery, batch.stream);
    if (result == CUDA_ERROR_NOT_READY) return 0;
    if (is_lost(result)) {
        abandon(result);
        return static_cast<int>(before);
    }
    const Status status = result == CUDA_SUCCESS
                              ? success()
                              : driver_.failed("cuStreamQuery after copies", result,
                                               describe(batch.items[batch.first].copy));
    for (std::size_t i = 0; i < batch.items.size(); ++i)
        finish(batch, i, status);
    return static_cast<int>(before - batch.unfinished);
}

int FusedCopies::progress(Batch& batch) {
    if (batch.seen != Seen::flags) return ask(batch);
    const int ended = look(batch);
    return ended == 0 && batch.doubt.is_due() ? ask(batch) : ended;
}

int FusedCopies::progress() {
    int ended = taken_.take_ended();
    for (const Item& item : taken_.take_untaken())
        waiting_.push(item.copy, *item.done);
    for (Batch& batch : batches_)
        if (!lost_ && batch.unfinished > 0) ended += progress(batch);
    const bool now = waiting_.goes_now(flying(), launches());
    if (lost_ || !now) return ended;
    if (Batch* batch = free_batch()) {
        const CUresult result = flush_batch(*batch);
        if (result != CUDA_SUCCESS) abandon(result);
    }
    return ended;
}

void FusedCopies::abandon(CUresult why) {
    lost_ = true;
    flags_.abandon();
    module_.abandon();
    for (Batch& batch : batches_) {
        batch.stream = nullptr;
        batch.behind = nullptr;
        for (std::size_t i = 0; i < batch.items.size(); ++i)
            if (batch.items[i].done != nullptr)
                finish(batch, i,
                       driver_.failed("the context was destroyed during a copy", why,
                                      describe(batch.items[i].copy)));
    }
}

std::vector<FusedQueue::Item> FusedCopies::take_unstarted() {
    std::vector<Item> unstarted = taken_.take_untaken();
    while (!waiting_.empty())
        unstarted.push_back(waiting_.pop());
    return unstarted;
}

void FusedCopies::close() {
    if (lost_) return;
    const Current current(driver_, context_);
    if (!current.ok()) return abandon(current.result());
    while (!lost_ && pending()) {
        for (Batch& batch : batches_) {
            if (batch.unfinished == 0) continue;
            driver_.call(driver_.cu.cuStreamSynchronize, batch.stream);
            const std::size_t before = batch.unfinished;
            progress(batch);
            if (!lost_ && before > 0 && batch.unfinished == before) ask(batch);
            if (lost_) return;
        }
        progress();
    }
    if (lost_) return;
    lost_ = true;
    for (Batch& batch : batches_) {
        if (batch.behind != nullptr) driver_.call(driver_.cu.cuEventDestroy_v2, batch.behind);
        if (batch.stream != nullptr) driver_.call(driver_.cu.cuStreamDestroy_v2, batch.stream);
    }
    module_.close();
    flags_.close();
}

}  // namespace gantry::device::cuda
