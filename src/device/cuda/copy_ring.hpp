// SPDX-License-Identifier: BSD-3-Clause
//
// CopyRing: the host's side of what it and the kernel gantry_copy_resident tell each other, over
// page-locked memory that somebody else keeps (device/kernels/copy_resident.hpp).
#pragma once

#include "base/units.hpp"
#include "device/kernels/copy_resident.hpp"

#include <cstddef>
#include <cstdint>

namespace gantry::device::cuda {

class CopyRing {
  public:
    static constexpr Bytes kItems = kernels::kRingItems;
    static constexpr unsigned kBlocks = 33;  // one reads the ring
    // Launches alternate between even and odd numbers (the kernel's counters), also around the end.
    static constexpr std::uint64_t kMostLaunches = 0xfffe;
    // Beyond it addresses have no room for a lap.
    static constexpr std::uint64_t kMostAddress = std::uint64_t{1} << kernels::kLapShift;
    static_assert(kMostLaunches % 2 == 0 && kMostLaunches < 1 << 16);

    explicit CopyRing(std::byte* memory = nullptr) : memory_(memory) {}
    // What it needs, zero at first.
    static constexpr Bytes bytes() { return kSlotsAt + kItems * kSlotBytes; }

    // The launch number `launch`, of 1 to kMostLaunches, taking items from `first` on; `device`: where
    // the GPU sees the memory; `pace`: of a mebibyte that leaves it in pieces. Without a `gap` it does
    // not ask whether it is kept from running.
    static kernels::Resident parameters(std::uint64_t device, std::uint64_t first,
                                        std::uint64_t launch, Nanoseconds idle, Nanoseconds life,
                                        Nanoseconds pace = 0, Nanoseconds gap = 0) {
        return {device,
                device + kFlagsAt,
                device + kStateAt,
                first,
                launch,
                static_cast<kernels::Word>(idle),
                static_cast<kernels::Word>(life),
                gap > 0 ? static_cast<kernels::Word>(gap) : ~kernels::Word{0},
                static_cast<kernels::Word>(pace)};
    }
    void put(std::uint64_t item, std::uint64_t destination, std::uint64_t source, Bytes bytes) {
        write(item, {destination, source, bytes, 0});
    }
    // At most kMostTold bytes that somebody else waits for: behind them the word at `word`, as the
    // GPU sees it, becomes `number`.
    static constexpr Bytes kMostTold = kernels::kMostTold;
    void put_told(std::uint64_t item, std::uint64_t destination, std::uint64_t source, Bytes bytes,
                  std::uint64_t word, std::uint32_t number) {
        write(item, {destination, source, kernels::told_bytes(bytes, number), word});
    }
    // At most kMostEnclosed bytes of the host's.
    static constexpr Bytes kMostEnclosed = kernels::kMostEnclosed;
    void enclose(std::uint64_t item, std::uint64_t destination, const void* source, Bytes bytes) {
        std::uint64_t words[2] = {};
        const auto* from = static_cast<const std::byte*>(source);
        for (Bytes i = 0; i < bytes; ++i)
            words[i / kernels::kBytesOfWord] |= std::to_integer<std::uint64_t>(from[i])
                                                << (8 * (i % kernels::kBytesOfWord));
        write(item, {destination, words[0], bytes | kernels::kEnclosed, words[1]});
    }
    // Rows that kernels::fits_an_item(), in as many items as items_of() says; addresses are the GPU's.
    static unsigned items_of(const kernels::Planes& planes) { return planes.count > 1 ? 2 : 1; }
    void put_rows(std::uint64_t item, const kernels::RowSet& set, const kernels::Planes& planes) {
        if (planes.count > 1)
            write(item++, {planes.destination_pitch, planes.source_pitch, kernels::kAddresses, 0});
        write(item, {set.destination, set.source, kernels::told_rows(set, planes),
                     kernels::told_pitches(set)});
    }
    // A reduction of fewer than 2^kCountBits elements, in as many items as items_of() says, all with
    // their flags; its addresses are the GPU's.
    static unsigned items_of(const kernels::ReduceWork& work) {
        return kernels::items_before(work.operands, work.destinations) + 1;
    }
    void put_reduction(std::uint64_t item, const kernels::ReduceWork& work,
                       kernels::ResidentElement element) {
        std::uint64_t words[kernels::kAddressesOfItem] = {};
        unsigned filled = 0;
        const auto put_addresses = [&] {
            write(item++, {words[0], words[1], kernels::kAddresses, words[2]});
            filled = 0;
            for (std::uint64_t& word : words)
                word = 0;
        };
        const auto add = [&](std::uint64_t address) {
            words[filled++] = address;
            if (filled == kernels::kAddressesOfItem) put_addresses();
        };
        for (kernels::Word i = 2; i < work.operands; ++i)
            add(work.source[i]);
        for (kernels::Word i = 1; i < work.destinations; ++i)
            add(work.destination[i]);
        if (filled > 0) put_addresses();
        write(item, {work.destination[0], work.source[0], kernels::told_reduction(work, element),
                     work.operands > 1 ? work.source[1] : 0});
    }
    // Each item has a slot in the same memory, for host memory that the GPU does not reach.
    static constexpr Bytes kSlotBytes = 1 * kKiB;
    std::byte* slot(std::uint64_t item) const { return memory_ + slot_at(item); }
    static std::uint64_t slot_on_device(std::uint64_t device, std::uint64_t item) {
        return device + slot_at(item);
    }
    bool is_copied(std::uint64_t item) const {
        const auto* flag = reinterpret_cast<const std::uint32_t*>(
            memory_ + kFlagsAt + item % kernels::kRingItems * kernels::kItemFlagBytes);
        // Pairs with the kernel's fence before its store, as below.
        return __atomic_load_n(flag, __ATOMIC_ACQUIRE) == static_cast<std::uint32_t>(item + 1);
    }
    bool has_started(std::uint64_t launch) const { return load(state().started) == launch; }
    // Whether it takes no more, and from which item on.
    bool has_ended(std::uint64_t launch, std::uint64_t& item) const {
        const kernels::Word ended = load(state().ended);
        if (ended >> kernels::kLaunchShift != launch) return false;
        item = ended & ((kernels::Word{1} << kernels::kLaunchShift) - 1);
        return true;
    }
    bool was_preempted(std::uint64_t launch) const { return load(state().preempted) == launch; }

  private:
    // The kernel may read while this writes: each word says by its lap whether it is new.
    void write(std::uint64_t item, const kernels::RingItem& words) {
        kernels::RingItem& place =
            reinterpret_cast<kernels::RingItem*>(memory_)[item % kernels::kRingItems];
        const auto store = [lap = kernels::lap_of(item)](kernels::Word& word, kernels::Word value) {
            __atomic_store_n(&word, lap | value, __ATOMIC_RELEASE);
        };
        store(place.destination, words.destination);
        store(place.source, words.source);
        store(place.more, words.more);
        store(place.bytes, words.bytes);
    }

    static constexpr Bytes kFlagsAt = kItems * sizeof(kernels::RingItem);
    static constexpr Bytes kStateAt =
        kFlagsAt + round_up(kItems * Bytes{kernels::kItemFlagBytes}, Bytes{64});

    static constexpr Bytes kSlotsAt =
        round_up(kStateAt + sizeof(kernels::ResidentState), kSlotBytes);
    static Bytes slot_at(std::uint64_t item) { return kSlotsAt + item % kItems * kSlotBytes; }
    static kernels::Word load(const kernels::Word& word) {
        return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
    }
    const kernels::ResidentState& state() const {
        return *reinterpret_cast<const kernels::ResidentState*>(memory_ + kStateAt);
    }

    std::byte* memory_;
};

}  // namespace gantry::device::cuda
