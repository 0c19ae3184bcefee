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
// Between two looks of the kernel at its ring: a few microseconds, or a turn of another process.
constexpr Nanoseconds kPreempted = 60 * kMicrosecond;

}  // namespace

ResidentCopies::ResidentCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                               const CopySettings& settings)
    : driver_(driver),
      context_(context),
      settings_(settings),
      residency_(facts, settings.linger),
      module_(driver, settings.kernels && residency_.possible()) {}

// Looks whether the kernel has said that it takes no more.
bool ResidentCopies::has_ended() {
    if (kernel_ == Kernel::none) return true;
    if (!ring_.has_ended(launch_, first_untaken_)) return false;
    kernel_ = Kernel::none;
    residency_.ended(ring_.was_preempted(launch_) ? 0 : copies_, SteadyClock{}.now());
    return true;
}

// Whether an item that is put now will be taken, unless the kernel is kept from running.
bool ResidentCopies::stays(Nanoseconds now) {
    if (settings_.resident_margin >= 0 && has_ended()) return false;
    if (kernel_ == Kernel::launched) {
        if (!ring_.has_started(launch_)) return false;
        kernel_ = Kernel::stays;
    }
    const Nanoseconds margin = settings_.resident_margin;
    return now < std::max(launched_at_, last_item_at_) + residency_.linger() - margin &&
           now < launched_at_ + residency_.life() - margin;
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
    doubt_.reset();
    ++copies_;
    ++counts_.copies;
    return true;
}

void ResidentCopies::consider() {
    // Items that the last one did not take must be out of the way first.
    if (lost_ || closing_ || !module_.wanted() || kernel_ != Kernel::none || pending()) return;
    if (residency_.invest(SteadyClock{}.now(), settings_.neighbours) && prepare()) launch();
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
        CopyRing::parameters(memory_.device(), next_, launch_, residency_.linger(),
                             residency_.life(), residency_.takes_turns() ? kPreempted : 0);
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
    ++counts_.launches;
    copies_ = 0;
    return true;
}

int ResidentCopies::progress() {
    int ended = 0;
    while (!flights_.empty()) {
        Flight& flight = flights_.front();
        while (flight.ended < flight.items && ring_.is_copied(flight.first + flight.ended))
            ++flight.ended;
        if (flight.ended < flight.items && !goes_another_way(flight)) break;
        const FusedQueue::Item item{flight.copy, flight.done};
        const bool whole = flight.ended == flight.items;
        flights_.pop_front();
        if (whole) {
            ++ended;
            item.done->complete(success());
        } else {
            untaken_.push_back(item);
            ++counts_.untaken;
        }
    }
    if (ended == 0 && !flights_.empty()) look_closer();
    return ended;
}

// Its next item is none that the kernel took; those before it have ended, so that nothing writes
// there any more.
bool ResidentCopies::goes_another_way(const Flight& flight) const {
    return kernel_ == Kernel::none && flight.first + flight.ended >= first_untaken_;
}

// The oldest one does not show: did the kernel end before it came, or the context die?
void ResidentCopies::look_closer() {
    if (kernel_ != Kernel::none && has_ended()) return;
    if (!doubt_.is_due()) return;
    const Current current(driver_, context_);
    const CUresult result =
        current.ok() ? driver_.call(driver_.cu.cuStreamQuery, stream_) : current.result();
    if (result == CUDA_ERROR_NOT_READY) return;
    if (is_lost(result)) return abandon(result);
    const Flight& oldest = flights_.front();
    if (result == CUDA_SUCCESS) {
        // Nothing runs. What it took has its flags, and it has said where it ended, by now.
        if (kernel_ != Kernel::none && has_ended()) return;
        if (ring_.is_copied(oldest.first + oldest.ended)) return;
        first_untaken_ = oldest.first + oldest.ended;
    } else {
        driver_.call(driver_.cu.cuStreamSynchronize, stream_);
    }
    kernel_ = Kernel::none;
    module_.give_up("a kernel that stays", result, context_.gpu);
    if (result != CUDA_SUCCESS)
        fail_all(driver_.failed("cuStreamQuery after copies", result, describe(oldest.copy)));
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
    if (lost_) return;
    lost_ = true;
    if (stream_ != nullptr) {
        log::info("cuda: GPU {}: {} copies by {} resident kernels, {} that came too late",
                  context_.gpu, counts_.copies, counts_.launches, counts_.untaken);
        driver_.call(driver_.cu.cuStreamSynchronize, stream_);
        driver_.call(driver_.cu.cuStreamDestroy_v2, std::exchange(stream_, nullptr));
    }
    module_.close();
    memory_.close(driver_);
}

}  // namespace gantry::device::cuda
