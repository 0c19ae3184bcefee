// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/resident.hpp"

#include "base/clock.hpp"
#include "device/cuda/copies.hpp"
#include "device/kernels/images.hpp"

#include <algorithm>

namespace gantry::device::cuda {
namespace {

// An item costs its block a microsecond whatever its size; alone, a copy is quicker in smaller
// parts (H200: 64 KiB 5.1 us by four, 6.1 by two).
constexpr Bytes kBytesPerItem = 32 * kKiB, kBytesPerItemAlone = 16 * kKiB;
// An item must be on its way so long before the kernel gives up.
constexpr Nanoseconds kMargin = 4 * kMicrosecond;
// Between two looks of the kernel at its ring: a few microseconds, or a turn of another process.
constexpr Nanoseconds kPreempted = 60 * kMicrosecond;

}  // namespace

ResidentCopies::ResidentCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                               const CopySettings& settings)
    : driver_(driver),
      context_(context),
      uuid_(facts.uuid),
      takes_turns_(facts.queue_turn > 0),
      neighbours_(settings.neighbours),
      residency_(facts, settings.linger),
      module_(driver, settings.kernels && residency_.possible()) {}

// Looks whether the kernel has said that it takes no more.
bool ResidentCopies::has_ended() {
    if (kernel_ == Kernel::none) return true;
    if (!ring_.has_ended(launch_, first_)) return false;
    kernel_ = Kernel::none;
    residency_.ended(ring_.was_preempted(launch_) ? 0 : copies_);
    return true;
}

// Whether an item that is put now will be taken, unless the kernel is kept from running.
bool ResidentCopies::stays(Nanoseconds now) {
    if (has_ended()) return false;
    if (kernel_ == Kernel::launched) {
        if (!ring_.has_started(launch_)) return false;
        kernel_ = Kernel::stays;
    }
    return now < std::max(launched_at_, last_item_at_) + residency_.linger() - kMargin &&
           now < launched_at_ + residency_.life() - kMargin;
}

bool ResidentCopies::take(const Copy& copy, Completion& done) {
    if (kernel_ == Kernel::none) return false;
    const Nanoseconds now = SteadyClock{}.now();
    if (!stays(now)) return false;
    const CUdeviceptr to = device_address(copy.destination), from = device_address(copy.source);
    if (std::max(to, from) + copy.bytes >= CopyRing::kMostAddress) return false;
    const Bytes most = flights_.empty() ? kBytesPerItemAlone : kBytesPerItem;
    const Bytes items = divide_up(copy.bytes, most);
    const std::uint64_t oldest = flights_.empty() ? next_ : flights_.front().first;
    if (next_ + items - oldest > CopyRing::kItems) return false;
    flights_.push_back({copy, &done, next_, static_cast<unsigned>(items), 0});
    const Bytes share = round_up(divide_up(copy.bytes, items), Bytes{16});
    for (Bytes begin = 0; begin < copy.bytes; begin += share)
        ring_.put(next_++, to + begin, from + begin, std::min(share, copy.bytes - begin));
    flights_.back().items = static_cast<unsigned>(next_ - flights_.back().first);
    last_item_at_ = now;
    looks_ = 0;
    next_query_ = 0;
    ++copies_;
    ++all_copies_;
    return true;
}

void ResidentCopies::consider() {
    if (lost_ || !module_.wanted() || kernel_ != Kernel::none) return;
    if (!residency_.invest(SteadyClock{}.now())) return;
    // A neighbour's kernels, and its copies inside the GPU, would wait until ours ends.
    if (takes_turns_ && neighbours_ != nullptr && neighbours_->use(uuid_)) return;
    if (prepare()) launch();
}

bool ResidentCopies::prepare() {
    if (function_ != nullptr) return true;
    if (const CUresult refused = memory_.reserve(driver_, CopyRing::bytes());
        refused != CUDA_SUCCESS)
        module_.give_up("cuMemHostRegister", refused, context_.gpu);
    if (module_.wanted())
        if (const CUresult refused = create_stream(driver_, stream_); refused != CUDA_SUCCESS)
            module_.give_up("cuStreamCreate", refused, context_.gpu);
    ring_ = CopyRing(memory_.memory());
    return module_.load(kernels::copy_resident_ptx(), {{"gantry_copy_resident", &function_}},
                        context_.gpu);
}

bool ResidentCopies::launch() {
    launch_ = launch_ % CopyRing::kMostLaunches + 1;
    kernels::Resident work =
        CopyRing::parameters(memory_.device(), first_, launch_, residency_.linger(),
                             residency_.life(), takes_turns_ ? kPreempted : 0);
    void* parameters[] = {&work};
    launched_at_ = SteadyClock{}.now();
    const CUresult result = driver_.call(
        driver_.cu.cuLaunchKernel, function_, CopyRing::kBlocks, 1u, 1u, kernels::kResidentThreads,
        1u, 1u, 0u, stream_, static_cast<void**>(parameters), static_cast<void**>(nullptr));
    if (result != CUDA_SUCCESS) {
        module_.give_up("cuLaunchKernel", result, context_.gpu);
        return false;
    }
    kernel_ = Kernel::launched;
    ++all_launches_;
    copies_ = 0;
    return true;
}

int ResidentCopies::progress() {
    int ended = 0;
    while (!flights_.empty()) {
        Flight& flight = flights_.front();
        while (flight.ended < flight.items && ring_.is_copied(flight.first + flight.ended))
            ++flight.ended;
        if (flight.ended < flight.items) break;
        Completion& done = *flight.done;
        flights_.pop_front();
        ++ended;
        done.complete(success());
    }
    if (ended > 0 || flights_.empty()) return ended;
    doubt();
    return ended;
}

// The oldest one does not show: did the kernel end before it came, or the context die?
void ResidentCopies::doubt() {
    if (has_ended() && first_ < next_) {
        const Current current(driver_, context_);
        if (!current.ok()) return abandon(current.result());
        if (!launch()) {
            // What the last one took is still being copied.
            driver_.call(driver_.cu.cuStreamSynchronize, stream_);
            return fail_all(failure(MPI_ERR_OTHER,
                                    "copies on GPU {}: no kernel can be launched any more",
                                    context_.gpu));
        }
    }
    if (++looks_ % kLooksBetweenClocks != 0) return;
    const Nanoseconds now = SteadyClock{}.now();
    if (next_query_ == 0) next_query_ = now + kDoubt;
    if (now < next_query_) return;
    next_query_ = now + kDoubt;
    const Current current(driver_, context_);
    const CUresult result =
        current.ok() ? driver_.call(driver_.cu.cuStreamQuery, stream_) : current.result();
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return;
    if (is_lost(result)) return abandon(result);
    fail_all(driver_.failed("cuStreamQuery after copies", result, describe(flights_.front().copy)));
}

void ResidentCopies::fail_all(const Status& why) {
    while (!flights_.empty()) {
        Completion& done = *flights_.front().done;
        flights_.pop_front();
        done.complete(why);
    }
}

void ResidentCopies::abandon(CUresult why) {
    lost_ = true;
    kernel_ = Kernel::none;
    memory_.abandon();
    module_.abandon();
    stream_ = nullptr;
    if (!flights_.empty())
        fail_all(driver_.failed("the context was destroyed during a copy", why,
                                describe(flights_.front().copy)));
}

void ResidentCopies::close() {
    while (!lost_ && pending())
        progress();
    if (lost_ || stream_ == nullptr) return;
    log::info("cuda: GPU {}: {} copies by {} resident kernels", context_.gpu, all_copies_,
              all_launches_);
    driver_.call(driver_.cu.cuStreamSynchronize, stream_);
    driver_.call(driver_.cu.cuStreamDestroy_v2, std::exchange(stream_, nullptr));
    module_.close();
    memory_.close(driver_);
    lost_ = true;
}

}  // namespace gantry::device::cuda
