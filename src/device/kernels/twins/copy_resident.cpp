// SPDX-License-Identifier: BSD-3-Clause
//
// Host twin of gantry_copy_resident, on a thread of its own: one loop that reads the ring, copies and
// reduces.
#include "device/kernels/copy_resident.hpp"
#include "kernels.hpp"
#include "twins.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <deque>

namespace gantry::kernels {
namespace {

Word now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<Word>(time.tv_sec) * 1'000'000'000 + static_cast<Word>(time.tv_nsec);
}

// False: it has not come.
bool take(const RingItem& from, Word lap, RingItem& item) {
    const auto word = [lap](const Word& of, Word& to) {
        const Word value = __atomic_load_n(&of, __ATOMIC_ACQUIRE);
        to = value & ~kLapMask;
        return (value & kLapMask) == lap;
    };
    return word(from.destination, item.destination) && word(from.source, item.source) &&
           word(from.bytes, item.bytes) && word(from.more, item.more);
}

void reduce(const simgpu_launch& launch, const RingItem& item, const std::deque<RingItem>& before) {
    ReduceWork work{};
    const std::size_t first =
        before.size() - items_before(field_of(item.bytes, 2), field_of(item.bytes, 3));
    read_reduction(item, work, [&](unsigned n) { return before[first + n]; });
    const auto translate = [&launch](Word* addresses, Word count) {
        for (Word i = 0; i < count; ++i)
            addresses[i] = reinterpret_cast<Word>(launch.translate(addresses[i]));
    };
    translate(work.source, work.operands);
    translate(work.destination, work.destinations);
    reduce_on_host(work, element_of(item.bytes));
}

void move_rows(const simgpu_launch& launch, const RingItem& item,
               const std::deque<RingItem>& before) {
    RowSet set{};
    Planes planes{};
    read_rows(item, set, planes, [&] { return before.back(); });
    for (Word plane = 0; plane < planes.count; ++plane)
        for (Word row = 0; row < set.count; ++row)
            std::memcpy(
                launch.translate(set.destination + plane * planes.destination_pitch +
                                 row * set.destination_pitch),
                launch.translate(set.source + plane * planes.source_pitch + row * set.source_pitch),
                set.width);
}

// The items of addresses that a reduction may still need.
constexpr std::size_t kMostBefore = items_before(kMostOperands, kMostOperands);

// Returns how long it takes.
Word perform(const simgpu_launch& launch, const RingItem& item, std::deque<RingItem>& before) {
    if ((item.bytes & kAddresses) != 0) {
        before.push_back(item);
        if (before.size() > kMostBefore) before.pop_front();
        return launch.resident_ns;
    }
    if ((item.bytes & kReduces) != 0) {
        reduce(launch, item, before);
        return launch.resident_ns;
    }
    // Addresses in host memory come back unchanged.
    const auto is_of_host = [&launch](Word address) {
        return launch.translate(address) == reinterpret_cast<void*>(address);
    };
    void* const to = launch.translate(item.destination);
    if ((item.bytes & kEnclosed) != 0) {
        for (unsigned i = 0; i < bytes_of(item.bytes); ++i)
            static_cast<unsigned char*>(to)[i] = enclosed_byte(item, i);
        return launch.resident_in_ns;
    }
    if ((item.bytes & kRows) != 0)
        move_rows(launch, item, before);
    else
        std::memmove(to, launch.translate(item.source), bytes_of(item.bytes));
    if (is_of_host(item.source)) return launch.resident_in_ns;
    return is_of_host(item.destination) ? launch.resident_out_ns : launch.resident_ns;
}

// An item that was copied, when its flag may be raised, and who else is told.
struct Copied {
    Word item, due, word;
    unsigned number;
};

void raise(Word word, unsigned number) {
    __atomic_store_n(reinterpret_cast<unsigned*>(word), number, __ATOMIC_RELEASE);
}

void raise_due_flags(const Resident& work, std::deque<Copied>& copied, Word time) {
    for (; !copied.empty() && copied.front().due <= time; copied.pop_front()) {
        const Copied& each = copied.front();
        if (each.word != 0) raise(each.word, each.number);
        raise(work.flags + each.item % kRingItems * kItemFlagBytes,
              static_cast<unsigned>(each.item + 1));
    }
}

void copy_resident(const simgpu_launch* launch) {
    Resident work;
    std::memcpy(&work, launch->parameters[0], sizeof work);
    const auto* ring = reinterpret_cast<const RingItem*>(work.ring);
    auto* state = reinterpret_cast<ResidentState*>(work.state);
    __atomic_store_n(&state->started, work.launch, __ATOMIC_RELEASE);
    std::deque<Copied> copied;
    std::deque<RingItem> addresses;
    const Word begin = now();
    Word head = work.first, link_taken = 0;
    for (Word last = begin, time = begin; time - begin <= work.life && time <= last + work.idle;
         time = now()) {
        raise_due_flags(work, copied, time);
        RingItem item;
        if (!take(ring[head % kRingItems], lap_of(head), item)) {
            sched_yield();
            continue;
        }
        const Word takes = perform(*launch, item, addresses);
        const bool told = (item.bytes & kNoCopy) == 0 && item.more != 0;
        last = now();
        if (told) {
            const Word leaves = std::max(link_taken, time);
            last = link_taken = leaves + (bytes_of(item.bytes) * work.pace >> 20);
        }
        copied.push_back({head++, (told ? link_taken : time) + takes, told ? item.more : 0,
                          number_of(item.bytes)});
    }
    __atomic_store_n(&state->ended, launch_and_item(work.launch, head), __ATOMIC_RELEASE);
    while (!copied.empty())
        raise_due_flags(work, copied, now());
}

void traffic(const simgpu_launch*, uint64_t* device_bytes, uint64_t* link_bytes) {
    *device_bytes = *link_bytes = 0;  // it ends when it ends
}

}  // namespace

void add_copy_resident(void (*add)(const simgpu_twin* twin)) {
    static const simgpu_twin kTwin = {"gantry_copy_resident", &copy_resident, &traffic, 1};
    add(&kTwin);
}

}  // namespace gantry::kernels
