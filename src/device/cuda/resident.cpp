// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/resident.hpp"

#include "base/clock.hpp"
#include "device/cuda/copies.hpp"
#include "device/kernels/images.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::device::cuda {
namespace {

// An item costs its block a microsecond whatever its size, and the processor a flag; alone, a copy is
// quicker in smaller parts (H200: 64 KiB 5.1 us by four, 6.1 by two).
constexpr Bytes kBytesPerItem = 32 * kKiB, kBytesPerItemBetweenDevices = 64 * kKiB,
                kBytesPerItemAlone = 16 * kKiB;
// From the host a block keeps so many requests in flight, of 16, 4 or 1 bytes a thread: 16 KiB by one
// took 5.4, 9.5 and 23 us.
constexpr Bytes kBytesPerItemOfQuads = 16 * kKiB, kBytesPerItemOfWords = 8 * kKiB,
                kBytesPerItemOfBytes = 2 * kKiB;
constexpr Bytes kQuad = 16;  // bytes that a thread moves at once
// Reading the clock is a tenth of what a copy in a row costs the processor; meanwhile the kernel says
// itself when it has ended, and what comes too late goes another way.
constexpr unsigned kCopiesBetweenClocks = 8;
// Between two looks of the kernel at its ring: a few microseconds, or a turn of another process.
constexpr Nanoseconds kPreempted = 60 * kMicrosecond;

Bytes bytes_per_item(const Copy& copy, Ends ends, bool alone) {
    if (ends != Ends::from_host && alone) return kBytesPerItemAlone;
    if (ends != Ends::from_host)
        return ends == Ends::devices ? kBytesPerItemBetweenDevices : kBytesPerItem;
    const CUdeviceptr odd =
        device_address(copy.destination) | device_address(copy.source) | copy.bytes;
    return odd % kQuad == 0 ? kBytesPerItemOfQuads
           : odd % 4 == 0   ? kBytesPerItemOfWords
                            : kBytesPerItemOfBytes;
}

// Where the bytes are on the host's side: in the item, in slots of the items', or in the program's
// memory. Copying a few is cheaper than asking whether that is page-locked.
enum class HostEnd : std::uint8_t { item, slot, memory };

HostEnd quickest_host_end(const Copy& copy, Ends ends) {
    if (ends == Ends::devices) return HostEnd::memory;
    if (ends == Ends::from_host && copy.bytes <= CopyRing::kMostEnclosed) return HostEnd::item;
    return copy.bytes <= CopyRing::kSlotBytes ? HostEnd::slot : HostEnd::memory;
}

}  // namespace

ResidentCopies::ResidentCopies(Driver& driver, const Context& context, const GpuFacts& facts,
                               const CopySettings& settings)
    : driver_(driver),
      context_(context),
      settings_(settings),
      residency_(facts, settings.idle_timeout),
      module_(driver, settings.kernels && residency_.possible()) {}

// Looks whether the kernel has said that it takes no more.
bool ResidentCopies::has_ended() {
    if (kernel_ == Kernel::none) return true;
    if (!ring_.has_ended(launch_, first_untaken_)) return false;
    kernel_ = Kernel::none;
    residency_.ended(ring_.was_preempted(launch_) ? 0 : saved_, SteadyClock{}.now());
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
    return now < std::max({launched_at_, last_item_at_, link_busy_until_}) +
                     residency_.idle_timeout() - margin &&
           now < launched_at_ + residency_.life() - margin;
}

bool ResidentCopies::take(const Copy& copy, const Way& way, Copies copies, User& user) {
    const Ends ends = way.ends;
    if (kernel_ == Kernel::none || !residency_.takes(ends, copies)) return false;
    const bool in_a_row = !flights_.empty() && ++taken_ % kCopiesBetweenClocks != 0;
    const Nanoseconds now = in_a_row ? last_item_at_ : SteadyClock{}.now();
    // Behind what leaves the GPU it would wait longer than for a copy engine.
    if (!stays(now) || link_busy_until_ - now > kMostBacklog) return false;
    const CUdeviceptr to = device_address(copy.destination), from = device_address(copy.source);
    if (std::max(to, from) + copy.bytes >= CopyRing::kMostAddress) return false;
    HostEnd host = quickest_host_end(copy, ends);
    if (ends != Ends::devices && host == HostEnd::memory &&
        !(way.page_locked && reaches(copy, ends))) {
        if (copy.bytes > kMostThroughSlots) return false;
        host = HostEnd::slot;
    }
    const Bytes most =
        host == HostEnd::slot ? CopyRing::kSlotBytes : bytes_per_item(copy, ends, flights_.empty());
    const Bytes items = divide_up(copy.bytes, most);
    if (!has_room(items)) return false;
    const Bytes share = round_up(divide_up(copy.bytes, items), Bytes{16});
    const std::uint64_t first = next_;
    const auto* const bytes_from = static_cast<const std::byte*>(copy.source);
    for (Bytes begin = 0; begin < copy.bytes; begin += share, ++next_) {
        const Bytes bytes = std::min(share, copy.bytes - begin);
        const std::uint64_t slot = CopyRing::slot_on_device(memory_.device(), next_);
        if (host == HostEnd::item) {
            ring_.enclose(next_, to + begin, bytes_from + begin, bytes);
        } else if (host == HostEnd::memory) {
            ring_.put(next_, to + begin, from + begin, bytes);
        } else if (ends == Ends::to_host) {
            ring_.put(next_, slot, from + begin, bytes);
        } else {
            std::memcpy(ring_.slot(next_), bytes_from + begin, bytes);
            ring_.put(next_, to + begin, slot, bytes);
        }
    }
    took(copy, user, first, share, host == HostEnd::slot && ends == Ends::to_host, &counts_.copies,
         now, 0);
    saved_ += residency_.saving(ends, copies);
    return true;
}

bool ResidentCopies::has_room(Bytes items) const {
    const std::uint64_t oldest = flights_.empty() ? next_ : flights_.front().first;
    return next_ + items - oldest <= CopyRing::kItems;
}

void ResidentCopies::took(const Copy& copy, User& user, std::uint64_t first, Bytes share,
                          bool in_slots, std::uint64_t* counted, Nanoseconds now,
                          Nanoseconds until) {
    flights_.push(
        {copy, &user, first, static_cast<unsigned>(next_ - first), 0, share, in_slots, counted});
    if (counted != nullptr) ++*counted;
    if (counted == &counts_.copies && settings_.resident != nullptr) ++settings_.resident->copies;
    last_item_at_ = now;
    link_busy_until_ = std::max(link_busy_until_, until);
    residency_.took(std::max(now, link_busy_until_));
    doubt_.reset();
}

bool ResidentCopies::would_cut_through(Ends ends) const {
    std::uint64_t first_untaken = 0;
    return kernel_ != Kernel::none && residency_.cuts_through(ends) &&
           !ring_.has_ended(launch_, first_untaken);
}

bool ResidentCopies::take_cut_through(const Copy& copy, Ends ends, User& user) {
    if (kernel_ == Kernel::none || !residency_.cuts_through(ends)) return false;
    const bool out = ends == Ends::to_host;
    const Nanoseconds now = SteadyClock{}.now();
    const Nanoseconds begin = std::max(now, link_busy_until_);
    if (!out && begin - now > kMostBacklog) return false;
    if (out && !residency_.cut_through_pays(copy.bytes)) return false;
    const Nanoseconds until = begin + (out ? residency_.takes_to_leave(copy.bytes) : 0);
    if (!stays(now) || until >= launched_at_ + residency_.life() - settings_.resident_margin)
        return false;
    const CUdeviceptr to = device_address(copy.destination), from = device_address(copy.source);
    if (std::max(to, from) + copy.bytes >= CopyRing::kMostAddress) return false;
    if ((to | from) % kQuad != 0) return false;
    // From the host by single bytes it would be slower than a copy engine is: what is left of the
    // last 16 bytes is an item of its own.
    const Bytes odd = out ? 0 : copy.bytes % kQuad;
    const Bytes share = out ? copy.pieces.size : kBytesPerItemOfQuads;
    if (share > CopyRing::kMostTold || !has_room(divide_up(copy.bytes, share) + 1)) return false;
    const std::uint64_t first = next_;
    for (Bytes at = 0, piece = 0; at < copy.bytes - odd; at += share, ++piece) {
        const Bytes bytes = std::min(share, copy.bytes - odd - at);
        if (out)
            ring_.put_told(next_++, to + at, from + at, bytes,
                           device_address(copy.pieces.word(piece)), copy.number);
        else
            ring_.put(next_++, to + at, from + at, bytes);
    }
    if (odd > 0) ring_.put(next_++, to + copy.bytes - odd, from + copy.bytes - odd, odd);
    const bool cuts_through = out || copy.pieces.cut_through;
    std::uint64_t* const counted =
        cuts_through && copy.pieces.message > 0 ? &counts_.cuts_through : nullptr;
    took(copy, user, first, share, false, counted, now, out ? until : 0);
    if (cuts_through) saved_ += residency_.saving_of_cut_through(ends, copy.bytes);
    return true;
}

// What is known may be out of date, and a kernel that touches host memory which is not page-locked
// any more takes the context with it, where a copy engine would only be refused: so the driver is
// asked each time (0.1 us an end).
bool ResidentCopies::reaches(const Copy& copy, Ends ends) {
    const Current current(driver_, context_);
    if (!current.ok()) return false;
    const CUdeviceptr host = device_address(ends == Ends::to_host ? copy.destination : copy.source);
    for (const CUdeviceptr end : {host, host + copy.bytes - 1}) {
        CUdeviceptr seen = 0;
        if (driver_.call(driver_.cu.cuMemHostGetDevicePointer_v2, &seen,
                         reinterpret_cast<void*>(end), 0u) != CUDA_SUCCESS ||
            seen != end)
            return false;
    }
    return true;
}

// Items that the last one did not take must be out of the way first. Who asks would_cut_through() before
// each copy may be the first to hear of a kernel's end here.
bool ResidentCopies::may_launch() {
    if (lost_ || closing_ || !module_.wanted() || pending()) return false;
    return kernel_ == Kernel::none || (settings_.resident_margin >= 0 && has_ended());
}

void ResidentCopies::consider_cut_through(Ends ends, Bytes message) {
    if (may_launch() && residency_.cuts_through(ends) &&
        residency_.invest_in_cut_through(ends, message, SteadyClock{}.now(),
                                         settings_.neighbours) &&
        prepare())
        launch();
}

void ResidentCopies::consider(Ends ends, Copies copies) {
    if (!may_launch()) return;
    if (residency_.takes(ends, copies) &&
        residency_.invest(ends, SteadyClock{}.now(), settings_.neighbours, copies) && prepare())
        launch();
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
    return module_.load(kernels::copy_resident(), {{"gantry_copy_resident", &function_}},
                        context_.gpu);
}

bool ResidentCopies::launch() {
    launch_ = launch_ % CopyRing::kMostLaunches + 1;
    kernels::Resident work = CopyRing::parameters(
        memory_.device(), next_, launch_, residency_.idle_timeout(), residency_.life(),
        residency_.pace(), residency_.is_time_sliced() ? kPreempted : 0);
    void* parameters[] = {&work};
    launched_at_ = SteadyClock{}.now();
    link_busy_until_ = 0;
    const CUresult result = driver_.call(
        driver_.cu.cuLaunchKernel, function_, CopyRing::kBlocks, 1u, 1u, kernels::kResidentThreads,
        1u, 1u, 0u, stream_, static_cast<void**>(parameters), static_cast<void**>(nullptr));
    if (result != CUDA_SUCCESS) {
        module_.give_up("cuLaunchKernel", result, context_.gpu);
        return false;
    }
    kernel_ = Kernel::launched;
    ++counts_.launches;
    if (settings_.resident != nullptr) ++settings_.resident->launches;
    saved_ = 0;
    return true;
}

void ResidentCopies::progress() {
    bool some = false;
    while (!flights_.empty()) {
        Flight& flight = flights_.front();
        while (flight.ended < flight.items && ring_.is_copied(flight.first + flight.ended))
            ++flight.ended;
        if (flight.ended == flight.items) {
            some = true;
            empty_slots(flight);
            flights_.pop().user->ended();
        } else if (goes_another_way(flight)) {
            give_back(flights_.pop());
        } else {
            break;
        }
    }
    if (!some && !flights_.empty()) look_closer();
}

void ResidentCopies::give_back(const Flight& flight) {
    ++counts_.untaken;
    if (flight.counted != nullptr) --*flight.counted;
    if (flight.counted == &counts_.copies && settings_.resident != nullptr)
        --settings_.resident->copies;
    flight.user->untaken(flight.copy);
}

void ResidentCopies::empty_slots(const Flight& flight) const {
    if (!flight.in_slots) return;
    auto* const to = static_cast<std::byte*>(flight.copy.destination);
    for (unsigned i = 0; i < flight.items; ++i)
        std::memcpy(to + i * flight.share, ring_.slot(flight.first + i),
                    std::min(flight.share, flight.copy.bytes - i * flight.share));
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
    if (is_lost(result)) return abandon();
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
    module_.give_up("a persistent kernel", result, context_.gpu);
    if (result == CUDA_SUCCESS) return;
    const Status failed =
        driver_.failed("cuStreamQuery after copies", result, describe(oldest.copy));
    while (!flights_.empty())
        flights_.pop().user->failed(failed);
}

void ResidentCopies::abandon() {
    lost_ = true;
    kernel_ = Kernel::none;
    memory_.abandon();
    module_.abandon();
    stream_ = nullptr;
    while (!flights_.empty())
        give_back(flights_.pop());
}

void ResidentCopies::close() {
    if (lost_) return;
    lost_ = true;
    if (stream_ != nullptr) {
        log::info(
            "cuda: GPU {}: {} copies and {} staged messages piece by piece by {} resident kernels, "
            "{} that came too late",
            context_.gpu, counts_.copies, counts_.cuts_through, counts_.launches, counts_.untaken);
        driver_.call(driver_.cu.cuStreamSynchronize, stream_);
        driver_.call(driver_.cu.cuStreamDestroy_v2, std::exchange(stream_, nullptr));
    }
    module_.close();
    memory_.close(driver_);
}

}  // namespace gantry::device::cuda
