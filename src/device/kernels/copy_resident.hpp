// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel `gantry_copy_resident` and the host tell each other. The kernel stays for a while
// and takes copies and reductions out of a ring in page-locked memory as the host writes them there; none
// costs a call of the driver (docs/design/persistent-kernel.md).
//
//   host ----items----> ring --+-- block 0 reads it and passes items on --> device memory
//                              |                                        blocks 1.. copy
//   host <---flags---- one of each item, by the block that copied it
//   host <---state---- the launch that runs; where it stopped taking items
//
// An item is written and read without locks: each of its words carries the number of the lap around
// the ring in its upper bits, so that a word of the lap before is never taken for a new one.
#pragma once

#include "move_rows.hpp"
#include "reduce.hpp"

namespace gantry::kernels {

inline constexpr unsigned kRingItems = 1024;
inline constexpr unsigned kResidentThreads = 256;
inline constexpr unsigned kItemFlagBytes = 4;

inline constexpr unsigned kLapShift = 57;
inline constexpr Word kLapMask = ~Word{0} << kLapShift;

// Of item n, counted since the ring was made; never 0, as a ring starts out.
constexpr Word lap_of(Word n) {
    return (n / kRingItems % 127 + 1) << kLapShift;
}

constexpr Word low_bits(Word word, unsigned bits) {
    return word & ((Word{1} << bits) - 1);
}

struct alignas(32) RingItem {
    Word destination, source, bytes, more;  // each with its lap
};

// An item may be a piece of something that somebody else waits for: then `more` is the address of a
// word in page-locked memory, and `bytes` holds above its size, kMostTold at most, the number that
// the word becomes; both ends are aligned to 16 bytes. Such pieces leave the device in their order, at the pace of the link.
inline constexpr unsigned kNumberShift =
    20;  // a number of 32 bits ends below what says the kind of an item
inline constexpr Word kMostTold = 32 * 1024;
constexpr Word told_bytes(Word bytes, unsigned number) {
    return bytes | Word{number} << kNumberShift;
}
constexpr Word bytes_of(Word told) {
    return low_bits(told, kNumberShift);
}
constexpr unsigned number_of(Word told) {
    return static_cast<unsigned>(told >> kNumberShift);
}

// A few bytes from the host come in the item itself: then `bytes` says so, and `source` and `more`
// hold seven each, the first one lowest.
inline constexpr Word kEnclosed = Word{1} << (kLapShift - 1);
inline constexpr unsigned kBytesOfWord = 7;
inline constexpr unsigned kMostEnclosed = 2 * kBytesOfWord;
constexpr unsigned char enclosed_byte(const RingItem& item, unsigned index) {
    const Word word = index < kBytesOfWord ? item.source : item.more;
    return static_cast<unsigned char>(word >> (8 * (index % kBytesOfWord)));
}

// An item may be a reduction of short vectors (reduce.hpp): then `bytes` says so, and holds the number of
// elements and what is done to them; `source` and `more` are the first two vectors. The addresses of the
// others, and then of more destinations, came right before it, three in an item that does nothing else.
// So the kernel has taken all of them when it takes the reduction.
inline constexpr Word kReduces = kEnclosed >> 1, kAddresses = kEnclosed >> 2;
inline constexpr unsigned kAddressesOfItem = 3;
inline constexpr unsigned kCountBits = 20, kFieldBits = 5;
constexpr Word field_of(Word told, unsigned field) {
    return low_bits(told >> (kCountBits + field * kFieldBits), kFieldBits);
}
constexpr Word told_reduction(const ReduceWork& work, ResidentElement element) {
    const Word fields[] = {work.operation, static_cast<Word>(element), work.operands,
                           work.destinations};
    Word told = kReduces | work.count;
    for (unsigned i = 0; i < 4; ++i)
        told |= fields[i] << (kCountBits + i * kFieldBits);
    return told;
}
constexpr ResidentElement element_of(Word told) {
    return static_cast<ResidentElement>(field_of(told, 1));
}
// How many addresses come before a reduction, and in how many items.
constexpr unsigned addresses_before(Word operands, Word destinations) {
    return static_cast<unsigned>((operands > 2 ? operands - 2 : 0) + destinations - 1);
}
constexpr unsigned items_before(Word operands, Word destinations) {
    return (addresses_before(operands, destinations) + kAddressesOfItem - 1) / kAddressesOfItem;
}
constexpr Word address_of(const RingItem& item, unsigned index) {
    return index == 0 ? item.destination : index == 1 ? item.source : item.more;
}
// The work that an item tells of. `before(n)`: the n-th of the items before it, asked for in their order.
template <class Before>
constexpr void read_reduction(const RingItem& item, ReduceWork& work, Before before) {
    work.count = low_bits(item.bytes, kCountBits);
    work.operation = field_of(item.bytes, 0);
    work.operands = field_of(item.bytes, 2);
    work.destinations = field_of(item.bytes, 3);
    work.destination[0] = item.destination;
    work.source[0] = item.source;
    work.source[1] = item.more;
    const unsigned all = addresses_before(work.operands, work.destinations);
    const unsigned sources = all - static_cast<unsigned>(work.destinations - 1);
    for (unsigned n = 0; n * kAddressesOfItem < all; ++n) {
        const RingItem addresses = before(n);
        for (unsigned i = 0; i < kAddressesOfItem && n * kAddressesOfItem + i < all; ++i) {
            const unsigned index = n * kAddressesOfItem + i;
            Word& place =
                index < sources ? work.source[2 + index] : work.destination[1 + index - sources];
            place = address_of(addresses, i);
        }
    }
}

// A number and a place in the ring, told in one word.
inline constexpr unsigned kLaunchShift = 48;
constexpr Word launch_and_item(Word launch, Word item) {
    return launch << kLaunchShift | item;
}

// An item may be rows, or planes of rows: then `bytes` says so, and holds the width of a row, the rows of a
// plane and the planes; `more` holds the distances of rows. Those of planes came right before it, in an
// item that does nothing else, where there are several.
inline constexpr Word kRows = kEnclosed >> 3;
inline constexpr Word kNoCopy = kEnclosed | kReduces | kAddresses | kRows;
static_assert(kNumberShift + 32 <= kLapShift - 4);
inline constexpr unsigned kWidthBits = 20, kRowsBits = 20, kPlanesBits = 12, kPitchBits = 28;
static_assert(kWidthBits + kRowsBits + kPlanesBits <= kLapShift - 4 && 2 * kPitchBits <= kLapShift);
// Whether an item has room for it.
constexpr bool fits_an_item(const RowSet& set, const Planes& planes) {
    return (set.width >> kWidthBits | set.count >> kRowsBits | planes.count >> kPlanesBits |
            (set.destination_pitch | set.source_pitch) >> kPitchBits |
            (planes.destination_pitch | planes.source_pitch) >> kLapShift) == 0;
}
constexpr Word told_rows(const RowSet& set, const Planes& planes) {
    return kRows | set.width | set.count << kWidthBits | planes.count << (kWidthBits + kRowsBits);
}
constexpr Word told_pitches(const RowSet& set) {
    return set.destination_pitch | set.source_pitch << kPitchBits;
}
// The rows that an item tells of. `before()`: the item before it, asked for where there are several planes.
template <class Before>
constexpr void read_rows(const RingItem& item, RowSet& set, Planes& planes, Before before) {
    set = {item.destination,
           item.source,
           low_bits(item.bytes, kWidthBits),
           low_bits(item.bytes >> kWidthBits, kRowsBits),
           low_bits(item.more, kPitchBits),
           item.more >> kPitchBits};
    planes = {low_bits(item.bytes >> (kWidthBits + kRowsBits), kPlanesBits), 0, 0};
    if (planes.count == 1) return;
    const RingItem pitches = before();
    planes.destination_pitch = pitches.destination;
    planes.source_pitch = pitches.source;
}

struct ResidentState {
    Word started;    // the launch that runs, or did
    Word ended;      // launch_and_item: it takes no items from that one on
    Word preempted;  // the launch that was kept from running for a while
};

// Every word has 8 bytes, so that the simulated driver can recognise addresses among them.
struct Resident {
    Word ring, flags, state;  // page-locked
    Word first;               // item
    Word launch;              // 1 to 65534, odd and even in turn
    Word idle;                // ns without an item after which it ends
    Word life;                // ns after which it ends in any case
    Word gap;                 // ns between two looks at the ring that only a preemption explains
    Word pace;                // ns that a mebibyte takes over the link to the host
};

}  // namespace gantry::kernels
