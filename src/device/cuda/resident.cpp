// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/resident.hpp"

#include "base/clock.hpp"
#include "device/cuda/copies.hpp"
#include "device/kernels/copy_resident.hpp"
#include "device/kernels/images.hpp"

#include <algorithm>

namespace gantry::device::cuda {
namespace {

using kernels::kRingItems;
using kernels::ResidentState;
using kernels::RingItem;
using kernels::Word;

constexpr Bytes kRingBytes = kRingItems * sizeof(RingItem);
constexpr Bytes kFlagsAt = kRingBytes;
constexpr Bytes kStateAt = kFlagsAt + round_up(Bytes{kRingItems} * kernels::kItemFlagBytes, 64);
constexpr Bytes kMemoryBytes = kStateAt + sizeof(ResidentState);

// An item costs its block a microsecond whatever its size; alone, a copy is quicker in smaller
// parts (H200: 64 KiB 5.1 us by four, 6.1 by two).
constexpr Bytes kBytesPerItem = 32 * kKiB, kBytesPerItemAlone = 16 * kKiB;
constexpr unsigned kBlocks = 33;  // one reads the ring
// An item must be on its way so long before the kernel gives up.
constexpr Nanoseconds kMargin = 4 * kMicrosecond;
// Between two looks of the kernel at its ring: a few microseconds, or a turn of another process.
constexpr Nanoseconds kPreempted = 60 * kMicrosecond;
constexpr std::uint64_t kLaunchNumbers = 0xffff;
constexpr Word kMostAddress = Word{1} << kernels::kLapShift;

Word load(const Word& word) {
    // Pairs with the kernel's fence before its store.
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

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

RingItem* ResidentCopies::ring() const {
    return reinterpret_cast<RingItem*>(memory_.memory());
}

const ResidentState& ResidentCopies::state() const {
    return *reinterpret_cast<const ResidentState*>(memory_.memory() + kStateAt);
}

bool ResidentCopies::is_copied(std::uint64_t item) const {
    const auto* flag = reinterpret_cast<const std::uint32_t*>(
        memory_.memory() + kFlagsAt + item % kRingItems * kernels::kItemFlagBytes);
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == static_cast<std::uint32_t>(item + 1);
}

// Looks whether the kernel has said that it takes no more.
bool ResidentCopies::has_ended() {
    if (kernel_ == Kernel::none) return true;
    const Word ended = load(state().ended);
    if (ended >> kernels::kLaunchShift != launches_) return false;
    kernel_ = Kernel::none;
    first_ = ended & ((Word{1} << kernels::kLaunchShift) - 1);
    const bool shared = load(state().preempted) == launches_;
    residency_.ended(shared ? 0 : copies_);
    return true;
}

// Whether an item that is put now will be taken, unless the kernel is kept from running.
bool ResidentCopies::stays(Nanoseconds now) {
    if (has_ended()) return false;
    if (kernel_ == Kernel::launched) {
        if (load(state().started) != launches_) return false;
        kernel_ = Kernel::stays;
    }
    return now < std::max(launched_at_, last_item_at_) + residency_.linger() - kMargin &&
           now < launched_at_ + residency_.life() - kMargin;
}

bool ResidentCopies::take(const Copy& copy, Completion& done) {
    if (kernel_ == Kernel::none) return false;
    const Nanoseconds now = SteadyClock{}.now();
    if (!stays(now)) return false;
    const Word to = device_address(copy.destination), from = device_address(copy.source);
    if (to + copy.bytes >= kMostAddress || from + copy.bytes >= kMostAddress) return false;
    const Bytes most = flights_.empty() ? kBytesPerItemAlone : kBytesPerItem;
    const Bytes items = divide_up(copy.bytes, most);
    const std::uint64_t oldest = flights_.empty() ? next_ : flights_.front().first;
    if (next_ + items - oldest > kRingItems) return false;
    flights_.push_back({copy, &done, next_, static_cast<unsigned>(items), 0});
    const Bytes share = round_up(divide_up(copy.bytes, items), Bytes{16});
    for (Bytes begin = 0; begin < copy.bytes; begin += share)
        put(next_++, static_cast<std::byte*>(copy.destination) + begin,
            static_cast<const std::byte*>(copy.source) + begin,
            std::min(share, copy.bytes - begin));
    flights_.back().items = static_cast<unsigned>(next_ - flights_.back().first);
    last_item_at_ = now;
    looks_ = 0;
    next_query_ = 0;
    ++copies_;
    ++all_copies_;
    return true;
}

// The kernel may read while this writes: each word says by its lap whether it is new.
void ResidentCopies::put(std::uint64_t number, const void* destination, const void* source,
                         Bytes bytes) {
    RingItem& item = ring()[number % kRingItems];
    const Word lap = kernels::lap_of(number);
    const auto store = [lap](Word& word, Word value) {
        __atomic_store_n(&word, lap | value, __ATOMIC_RELEASE);
    };
    store(item.destination, device_address(destination));
    store(item.source, device_address(source));
    store(item.spare, 0);
    store(item.bytes, bytes);
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
    if (const CUresult refused = memory_.reserve(driver_, kMemoryBytes); refused != CUDA_SUCCESS)
        module_.give_up("cuMemHostRegister", refused, context_.gpu);
    if (module_.wanted())
        if (const CUresult refused = create_stream(); refused != CUDA_SUCCESS)
            module_.give_up("cuStreamCreate", refused, context_.gpu);
    return module_.load(kernels::copy_resident_ptx(), {{"gantry_copy_resident", &function_}},
                        context_.gpu);
}

// With the highest priority: where the program's own kernels fill the GPU, ours starts as soon as
// one of their blocks has left.
CUresult ResidentCopies::create_stream() {
    auto& cu = driver_.cu;
    int least = 0, greatest = 0;
    if (cu.cuStreamCreateWithPriority.function != nullptr &&
        cu.cuCtxGetStreamPriorityRange.function != nullptr)
        driver_.call(cu.cuCtxGetStreamPriorityRange, &least, &greatest);
    return greatest != least ? driver_.call(cu.cuStreamCreateWithPriority, &stream_,
                                            static_cast<unsigned>(CU_STREAM_NON_BLOCKING), greatest)
                             : driver_.call(cu.cuStreamCreate, &stream_,
                                            static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
}

bool ResidentCopies::launch() {
    launches_ = launches_ % kLaunchNumbers + 1;
    kernels::Resident work{};
    work.ring = memory_.device();
    work.flags = memory_.device() + kFlagsAt;
    work.state = memory_.device() + kStateAt;
    work.first = first_;
    work.launch = launches_;
    work.idle = static_cast<Word>(residency_.linger());
    work.life = static_cast<Word>(residency_.life());
    work.gap = takes_turns_ ? static_cast<Word>(kPreempted) : ~Word{0};
    void* parameters[] = {&work};
    launched_at_ = SteadyClock{}.now();
    const CUresult result = driver_.call(
        driver_.cu.cuLaunchKernel, function_, kBlocks, 1u, 1u, kernels::kResidentThreads, 1u, 1u,
        0u, stream_, static_cast<void**>(parameters), static_cast<void**>(nullptr));
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
        while (flight.ended < flight.items && is_copied(flight.first + flight.ended))
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
        if (!launch())
            return fail_all(failure(MPI_ERR_OTHER,
                                    "copies on GPU {}: no kernel can be launched any more",
                                    context_.gpu));
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
