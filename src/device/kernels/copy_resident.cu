// SPDX-License-Identifier: BSD-3-Clause
//
// gantry_copy_resident: a persistent kernel, which copies and reduces what the host puts into a ring
// meanwhile.
//
//   block 0      one warp; each lane reads half an item of the ring over the link, side by side: a
//                look is four requests and finds up to 16 items, which go on to a ring in device
//                memory
//   blocks 1..   each draws the number of the next item, looks for it in device memory, copies what it
//                says, moves rows or reduces short vectors, and raises its flag
//
// Where the program's kernels leave room for some blocks only, those do all the work; the host counts
// on the kernel when block 0 and another one run.
//
// What the host saw before it wrote an item is visible to who copies it: host's release, acquired
// by the reader of the ring, released by its store, acquired by the copying block. Acquiring also
// empties the first-level cache, which otherwise held the bytes that a buffer had when its last
// message was copied. (With fences instead a staged message of 256 KiB took 3 us more.)
//
// Pieces that somebody else waits for leave one after the other: when all blocks store at once, the
// link carries a part of each piece at a time, and the first one is whole when nearly all of the last
// one is. So the reader gives each a time from which on it may leave.
#include "copy_resident.hpp"
#include "copy_units.hpp"
#include "reduce_loops.hpp"
#include "row_units.hpp"

namespace gantry::kernels {
namespace {

constexpr unsigned kItemsAtOnce = 16;

// The ring in device memory. Items keep their numbers in it, and only those that went through here
// are ever there, so that no launch takes what another one left.
alignas(128) GANTRY_DEVICE TwoWords passed_on[kRingItems][2];
// What waiting blocks look at all the time and what they draw from lie apart.
alignas(128) GANTRY_DEVICE Word stopped;  // launch_and_item
// Numbers drawn by the blocks of this launch, and of the one before: launches run one after the
// other, and each clears the other's.
alignas(128) GANTRY_DEVICE Word drawn[2];
// Beside the items in device memory: from when on those may leave that somebody else waits for.
alignas(128) GANTRY_DEVICE Word leaves_at[kRingItems];

GANTRY_DEVICE inline bool is_of_lap(const TwoWords& half, Word lap) {
    return (half.first & kLapMask) == lap && (half.second & kLapMask) == lap;
}

// How many items from the first one on are there, of those whose halves the lanes hold.
GANTRY_DEVICE inline unsigned leading_items(bool mine) {
    const unsigned halves = ballot(mine);
    const unsigned missing = ~(halves & halves >> 1) & 0x55555555u;
    return missing == 0 ? kItemsAtOnce : static_cast<unsigned>(__builtin_ctz(missing)) / 2;
}

// How long the item whose second half this lane holds keeps the link to the host; 0: nobody else
// waits for it.
GANTRY_DEVICE inline unsigned takes_to_leave(const TwoWords& half, Word pace) {
    if ((half.first & kNoCopy) != 0 || (half.second & ~kLapMask) == 0) return 0;
    return static_cast<unsigned>(bytes_of(half.first) * pace >> 20);
}

GANTRY_DEVICE inline void read_ring(const Resident& work) {
    auto* state = reinterpret_cast<ResidentState*>(work.state);
    const unsigned lane = thread(), half = lane % 2;
    if (lane == 0) store_for_all(&drawn[(work.launch + 1) % 2], 0);
    bool started = false;
    const Word begin = clock_ns();
    Word head = work.first, last = begin, look = begin;
    Word link_free = 0;
    bool preempted = false;
    for (;;) {
        if (!started && any(load_of_device(&drawn[work.launch % 2]) > 0)) {
            started = true;
            if (lane == 0) store_for_all(&state->started, work.launch);
        }
        const Word number = head + lane / 2;
        const Word at = (number % kRingItems * 2 + half) * sizeof(TwoWords);
        const TwoWords words = acquire_of_host(work.ring + at);
        const unsigned came = leading_items(is_of_lap(words, lap_of(number)));
        const Word now = clock_ns();
        if (came > 0) {
            const bool mine = lane / 2 < came;
            const unsigned takes = mine && half == 1 ? takes_to_leave(words, work.pace) : 0;
            if (any(takes > 0)) {
                const unsigned until = sum_so_far(lane, takes), all = of_last_lane(until);
                const Word from = link_free > now ? link_free : now;
                if (takes > 0)
                    store_on_device(&leaves_at[number % kRingItems], from + until - takes);
                link_free = from + all;
            }
            if (mine) release_on_device(&passed_on[number % kRingItems][half], words);
            head += came;
            last = now;
        }
        if (link_free > last) last = link_free;
        preempted = now - look > work.gap;
        look = now;
        if (any(preempted || now - begin > work.life || (came == 0 && now > last + work.idle)))
            break;
    }
    together();
    if (lane != 0) return;
    publish();
    store_for_all(&stopped, launch_and_item(work.launch, head));
    if (preempted) store_for_all(&state->preempted, work.launch);
    publish();
    store_for_all(&state->ended, launch_and_item(work.launch, head));
}

// The item, when it has come; false: none will.
GANTRY_DEVICE inline bool await_item(const Resident& work, Word number, RingItem& item) {
    const Word lap = lap_of(number);
    const TwoWords* halves = passed_on[number % kRingItems];
    TwoWords ends, size;
    for (;;) {
        ends = load_of_device(&halves[0]);
        size = load_of_device(&halves[1]);
        const Word stop = load_of_device(&stopped);
        if (is_of_lap(ends, lap) && is_of_lap(size, lap)) break;
        if (stop >> kLaunchShift == work.launch &&
            number >= (stop & ((Word{1} << kLaunchShift) - 1)))
            return false;
    }
    // Not each time: it empties the cache of whoever computes on this multiprocessor.
    size = acquire_of_device(&halves[1]);
    item = {ends.first & ~kLapMask, ends.second & ~kLapMask, size.first & ~kLapMask,
            size.second & ~kLapMask};
    return true;
}

// All of it is loaded when its time to leave has come. Both ends are aligned to 16 bytes.
GANTRY_DEVICE inline void copy_paced(const RingItem& item, Word bytes, Word number) {
    constexpr unsigned kLoads = kMostTold / (kResidentThreads * sizeof(Quad));
    auto* to = reinterpret_cast<Quad*>(item.destination) + thread();
    auto* from = reinterpret_cast<const Quad*>(item.source) + thread();
    const Word mine = bytes / sizeof(Quad);
    const Word rest = bytes % sizeof(Quad), behind = bytes - rest + thread();
    Quad loaded[kLoads];
#pragma unroll
    for (unsigned i = 0; i < kLoads; ++i)
        if (thread() + i * kResidentThreads < mine) loaded[i] = from[i * kResidentThreads];
    if (thread() == 0) {
        const Word begin = load_of_device(&leaves_at[number % kRingItems]);
        while (clock_ns() < begin) {
        }
    }
    meet();
#pragma unroll
    for (unsigned i = 0; i < kLoads; ++i)
        if (thread() + i * kResidentThreads < mine) to[i * kResidentThreads] = loaded[i];
    if (thread() < rest)
        reinterpret_cast<unsigned char*>(item.destination)[behind] =
            reinterpret_cast<const unsigned char*>(item.source)[behind];
}

GANTRY_DEVICE inline void reduce_item(const Resident& work, const RingItem& item, Word number) {
    GANTRY_SHARED ReduceWork all;
    if (thread() == 0) {
        const Word first = number - items_before(field_of(item.bytes, 2), field_of(item.bytes, 3));
        read_reduction(item, all, [&](unsigned n) GANTRY_DEVICE {
            RingItem addresses;
            await_item(work, first + n, addresses);
            return addresses;
        });
    }
    meet();
    switch (element_of(item.bytes)) {
#define GANTRY_REDUCE(name, ...) \
    case ResidentElement::name: return reduce_in_block<__VA_ARGS__>(all);
        GANTRY_REDUCE_RESIDENT(GANTRY_REDUCE)
#undef GANTRY_REDUCE
    }
}

GANTRY_DEVICE inline void move_rows_of(const Resident& work, const RingItem& item, Word number) {
    GANTRY_SHARED RowSet set;
    GANTRY_SHARED Planes planes;
    if (thread() == 0)
        read_rows(item, set, planes, [&]() GANTRY_DEVICE {
            RingItem pitches;
            await_item(work, number - 1, pitches);
            return pitches;
        });
    meet();
    const Box shape{set.destination_pitch, set.source_pitch, static_cast<unsigned>(set.count),
                    planes};
    move_set(set, shape, set.destination, set.source, thread() / kWarp, kResidentThreads / kWarp,
             thread() % kWarp);
}

GANTRY_DEVICE inline void do_item(const Resident& work, const RingItem& item, Word number) {
    const Word bytes = bytes_of(item.bytes);
    if ((item.bytes & kReduces) != 0) {
        reduce_item(work, item, number);
    } else if ((item.bytes & kAddresses) != 0) {
        // Whoever has the reduction or the rows behind it reads them.
    } else if ((item.bytes & kRows) != 0) {
        move_rows_of(work, item, number);
    } else if ((item.bytes & kEnclosed) != 0) {
        if (thread() < bytes)
            reinterpret_cast<unsigned char*>(item.destination)[thread()] =
                enclosed_byte(item, thread());
    } else if (item.more != 0) {
        copy_paced(item, bytes, number);
    } else {
        copy_run(item.destination, item.source, bytes);
    }
}

// What the block's threads stored is before the barrier for the first thread, whose fence covers it
// too.
GANTRY_DEVICE inline void tell(const Resident& work, const RingItem& item, Word number) {
    meet();
    if (thread() != 0) return;
    publish();
    if ((item.bytes & kNoCopy) == 0 && item.more != 0)
        *reinterpret_cast<volatile unsigned*>(item.more) = number_of(item.bytes);
    *reinterpret_cast<volatile unsigned*>(work.flags + number % kRingItems * kItemFlagBytes) =
        static_cast<unsigned>(number + 1);
}

GANTRY_DEVICE inline void do_items(const Resident& work) {
    Word* const numbers = &drawn[work.launch % 2];
    Word next = thread() == 0 ? draw(numbers) : 0;
    for (;;) {
        GANTRY_SHARED RingItem item;
        GANTRY_SHARED Word number;
        GANTRY_SHARED bool goes_on;
        if (thread() == 0) {
            number = work.first + next;
            goes_on = await_item(work, number, item);
            if (goes_on) next = draw(numbers);  // comes while this one is copied
        }
        meet();
        if (!goes_on) return;
        do_item(work, item, number);
        tell(work, item, number);
    }
}

}  // namespace

GANTRY_KERNEL void gantry_copy_resident(Resident work) {
    if (block() != 0)
        do_items(work);
    else if (thread() < 32)
        read_ring(work);
}

}  // namespace gantry::kernels
