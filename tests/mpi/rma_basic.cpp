// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided operations in every kind of window, under every synchronisation.
#include "rma.hpp"

#include <cstdlib>
#include <array>
#include <numeric>

using namespace mpi_tests;

namespace {

constexpr int kNumbers = 64;

int right() {
    return (rank() + 1) % size();
}
int left() {
    return (rank() + size() - 1) % size();
}
MPI_Aint place(const Window& window, int target, int index) {
    return window.at(target, static_cast<std::size_t>(index) * sizeof(int));
}

// Every rank puts its numbers to the right and reads those of the left.
void put_and_get_in_fences(Window& window) {
    std::array<int, kNumbers> mine, seen{};
    std::iota(mine.begin(), mine.end(), 100 * rank());
    for (int i = 0; i < 2 * kNumbers; ++i)
        window.set<int>(static_cast<std::size_t>(i), -1);
    OK(MPI_Win_fence(0, window.win()));
    OK(MPI_Put(mine.data(), kNumbers, MPI_INT, right(), place(window, right(), 0), kNumbers,
               MPI_INT, window.win()));
    OK(MPI_Win_fence(0, window.win()));
    for (int i = 0; i < kNumbers; ++i)
        CHECK_EQ(window.value<int>(static_cast<std::size_t>(i)), 100 * left() + i);
    OK(MPI_Get(seen.data(), kNumbers, MPI_INT, right(), place(window, right(), 0), kNumbers,
               MPI_INT, window.win()));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win()));
    for (int i = 0; i < kNumbers; ++i)
        CHECK_EQ(seen[static_cast<std::size_t>(i)], 100 * rank() + i);
    CHECK_EQ(window.value<int>(kNumbers), -1);
}

// The same by lock, flush and unlock.
void put_and_get_under_locks(Window& window) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < size(); ++i)
        window.set<int>(static_cast<std::size_t>(i), -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int target = 0; target < size(); ++target) {
        const int mine = 1000 * rank() + target;
        int seen = -1;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win()));
        OK(MPI_Put(&mine, 1, MPI_INT, target, place(window, target, rank()), 1, MPI_INT,
                   window.win()));
        OK(MPI_Win_flush(target, window.win()));
        OK(MPI_Get(&seen, 1, MPI_INT, target, place(window, target, rank()), 1, MPI_INT,
                   window.win()));
        OK(MPI_Win_unlock(target, window.win()));
        CHECK_EQ(seen, mine);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < size(); ++i)
        CHECK_EQ(window.value<int>(static_cast<std::size_t>(i)), 1000 * i + rank());
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

void put_and_get_under_lock_all(Window& window) {
    for (int i = 0; i < size(); ++i)
        window.set<int>(static_cast<std::size_t>(i), -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, window.win()));
    std::vector<int> mine(static_cast<std::size_t>(size())), seen(mine.size(), -1);
    for (int target = 0; target < size(); ++target) {
        mine[static_cast<std::size_t>(target)] = 7 * rank() + target;
        OK(MPI_Put(&mine[static_cast<std::size_t>(target)], 1, MPI_INT, target,
                   place(window, target, rank()), 1, MPI_INT, window.win()));
    }
    OK(MPI_Win_flush_all(window.win()));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int target = 0; target < size(); ++target)
        OK(MPI_Get(&seen[static_cast<std::size_t>(target)], 1, MPI_INT, target,
                   place(window, target, rank()), 1, MPI_INT, window.win()));
    OK(MPI_Win_flush_local_all(window.win()));
    OK(MPI_Win_unlock_all(window.win()));
    CHECK(seen == mine);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

void put_between_post_and_wait(Window& window) {
    window.set<int>(0, -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Group world, targets, origins;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    const int to = right(), from = left();
    OK(MPI_Group_incl(world, 1, &to, &targets));
    OK(MPI_Group_incl(world, 1, &from, &origins));
    for (int round = 0; round < 3; ++round) {
        const int mine = 10 * rank() + round;
        OK(MPI_Win_post(origins, 0, window.win()));
        OK(MPI_Win_start(targets, 0, window.win()));
        OK(MPI_Put(&mine, 1, MPI_INT, to, place(window, to, 0), 1, MPI_INT, window.win()));
        OK(MPI_Win_complete(window.win()));
        if (round == 1) {
            int ended = 0;
            while (ended == 0)
                OK(MPI_Win_test(window.win(), &ended));
        } else {
            OK(MPI_Win_wait(window.win()));
        }
        CHECK_EQ(window.value<int>(0), 10 * from + round);
    }
    for (MPI_Group* group : {&world, &targets, &origins})
        OK(MPI_Group_free(group));
}

// Counters that all ranks change at once.
void accumulate_at_one_target(Window& window) {
    constexpr int kTimes = 50;
    for (std::size_t i = 0; i < 4; ++i)
        window.set<std::int64_t>(i, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const MPI_Aint first = window.at(0, 0), second = window.at(0, 8), third = window.at(0, 16);
    const std::int64_t one = 1, mine = rank() + 1;
    std::int64_t sum = 0;
    OK(MPI_Win_lock_all(0, window.win()));
    for (int i = 0; i < kTimes; ++i) {
        std::int64_t before = -1, swapped = -1;
        OK(MPI_Accumulate(&mine, 1, MPI_INT64_T, 0, first, 1, MPI_INT64_T, MPI_SUM, window.win()));
        OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, second, MPI_SUM, window.win()));
        OK(MPI_Win_flush(0, window.win()));
        CHECK(before >= 0 && before < kTimes * size());
        sum += before;
        std::int64_t now = -1;
        OK(MPI_Fetch_and_op(nullptr, &now, MPI_INT64_T, 0, second, MPI_NO_OP, window.win()));
        OK(MPI_Win_flush(0, window.win()));
        CHECK(now > before && now <= kTimes * size());
        // Adds one by compare and swap, as often as it takes.
        for (std::int64_t seen = 0;; seen = swapped) {
            const std::int64_t next = seen + 1;
            OK(MPI_Compare_and_swap(&next, &seen, &swapped, MPI_INT64_T, 0, third, window.win()));
            OK(MPI_Win_flush(0, window.win()));
            if (swapped == seen) break;
        }
    }
    OK(MPI_Win_unlock_all(window.win()));
    std::int64_t all = 0;
    OK(MPI_Allreduce(&sum, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    const std::int64_t calls = std::int64_t{kTimes} * size();
    CHECK_EQ(all, calls * (calls - 1) / 2);  // each number was fetched once
    if (rank() == 0) {
        CHECK_EQ(window.value<std::int64_t>(0), kTimes * size() * (size() + 1) / 2);
        CHECK_EQ(window.value<std::int64_t>(1), calls);
        CHECK_EQ(window.value<std::int64_t>(2), calls);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

void in_every_window(void (*what)(Window&), Kind kind = Kind::host) {
    for (Window::Made how : every_made()) {
        if (kind != Kind::host && how != Window::Made::create && how != Window::Made::dynamic)
            continue;
        about("window " + std::to_string(static_cast<int>(how)) + " of " + name(kind) + " memory");
        Window window(how, 4096, kind);
        what(window);
    }
    about("");
}

}  // namespace

MPI_CASE(rma_fences_in_every_window, 3) {
    in_every_window(put_and_get_in_fences);
}
MPI_CASE(rma_locks_in_every_window, 3) {
    in_every_window(put_and_get_under_locks);
}
MPI_CASE(rma_lock_all_in_every_window, 3) {
    in_every_window(put_and_get_under_lock_all);
}
MPI_CASE(rma_post_and_wait_in_every_window, 3) {
    in_every_window(put_between_post_and_wait);
}
MPI_CASE(rma_counters_in_every_window, 3) {
    in_every_window(accumulate_at_one_target);
}
MPI_CASE(rma_device_windows, 2) {
    for (Kind kind : {Kind::device, Kind::managed, Kind::pinned, Kind::vmm}) {
        in_every_window(put_and_get_in_fences, kind);
        in_every_window(put_and_get_under_locks, kind);
        in_every_window(put_between_post_and_wait, kind);
        in_every_window(accumulate_at_one_target, kind);
    }
}

// Each process uses its own GPU alone, and reaches the other's memory through a mapping.
MPI_CASE(rma_between_two_gpus_is_one_copy, 2) {
    if (gpu().count < 2) skip("one GPU only");
    if (getenv("GANTRY_SHM") != nullptr) skip("without shared memory nothing is mapped");
    constexpr std::size_t kBytes = 1 << 20;
    Memory exposed(Kind::device, kBytes, rank()), mine(Kind::device, kBytes, rank());
    exposed.fill(static_cast<unsigned>(rank()));
    mine.fill(2);
    MPI_Win win;
    OK(MPI_Win_create(exposed.data(), kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(0, win));
    const int bytes = static_cast<int>(kBytes);
    std::vector<std::byte> got(kBytes);
    for (const bool puts : {false, true}) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (gpu().simulated) reset_calls();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank() == 0) {
            if (puts)
                OK(MPI_Put(mine.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win));
            else
                OK(MPI_Get(mine.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, win));
            OK(MPI_Win_flush(1, win));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (gpu().simulated) CHECK_EQ(static_cast<int>(calls().copies), rank() == 0 ? 1 : 0);
        if (rank() == 0 && !puts) {
            mine.read(got.data(), kBytes);
            for (std::size_t i = 0; i < kBytes; ++i)
                if (got[i] != pattern(1, i)) CHECK_EQ(i, kBytes);
            mine.fill(3);
        }
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    exposed.read(got.data(), kBytes);
    for (std::size_t i = 0; i < kBytes; ++i)
        if (got[i] != pattern(rank() == 1 ? 3 : 0, i)) CHECK_EQ(i, kBytes);
    OK(MPI_Win_free(&win));
}

// Several elements of a type without a rule, at either end: their runs come in the order of packed
// memory, whichever of them go together on the way.
MPI_CASE(rma_irregular_types_in_every_window, 2) {
    constexpr int kBlocks = 40, kElements = 3;
    int displacements[kBlocks];
    for (int i = 0; i < kBlocks; ++i)
        displacements[i] = i * (i + 1) / 2;
    MPI_Datatype irregular;
    OK(MPI_Type_create_indexed_block(kBlocks, 1, displacements, MPI_INT, &irregular));
    OK(MPI_Type_commit(&irregular));
    const int per_element = displacements[kBlocks - 1] + 1, all = kElements * per_element;
    const auto place_of = [&](int number) {
        return static_cast<std::size_t>(number / kBlocks * per_element +
                                        displacements[number % kBlocks]);
    };
    for (Window::Made how : every_made()) {
        about("window " + std::to_string(static_cast<int>(how)));
        Window window(how, static_cast<std::size_t>(all) * sizeof(int));
        const auto clear = [&] {
            for (int i = 0; i < all; ++i)
                window.set<int>(static_cast<std::size_t>(i), i);
        };
        clear();
        const int other = 1 - rank(), numbers = kElements * kBlocks;
        std::vector<int> flat(static_cast<std::size_t>(numbers), -1),
            spread(static_cast<std::size_t>(all), -1);
        OK(MPI_Win_fence(0, window.win()));
        OK(MPI_Get(flat.data(), numbers, MPI_INT, other, window.at(other, 0), kElements, irregular,
                   window.win()));
        OK(MPI_Get(spread.data(), kElements, irregular, other, window.at(other, 0), kElements,
                   irregular, window.win()));
        OK(MPI_Win_fence(0, window.win()));
        for (int i = 0; i < numbers; ++i) {
            CHECK_EQ(flat[static_cast<std::size_t>(i)], static_cast<int>(place_of(i)));
            CHECK_EQ(spread[place_of(i)], static_cast<int>(place_of(i)));
        }
        std::iota(flat.begin(), flat.end(), 1000);
        OK(MPI_Put(flat.data(), numbers, MPI_INT, other, window.at(other, 0), kElements, irregular,
                   window.win()));
        OK(MPI_Win_fence(0, window.win()));
        for (int i = 0; i < numbers; ++i)
            CHECK_EQ(window.value<int>(place_of(i)), 1000 + i);
        OK(MPI_Win_fence(0, window.win()));  // the other one has looked, too
        OK(MPI_Accumulate(flat.data(), numbers, MPI_INT, other, window.at(other, 0), kElements,
                          irregular, MPI_SUM, window.win()));
        OK(MPI_Win_fence(0, window.win()));
        for (int i = 0; i < numbers; ++i)
            CHECK_EQ(window.value<int>(place_of(i)), 2 * (1000 + i));
        CHECK_EQ(window.value<int>(2), 2);  // a hole
    }
    about("");
    OK(MPI_Type_free(&irregular));
}

// A rank that polls its own part of a window serves the others meanwhile.
MPI_CASE(rma_ranks_that_poll_their_own_memory_serve_others, 2) {
    for (Window::Made how : every_made()) {
        about("window " + std::to_string(static_cast<int>(how)));
        Window window(how, 64);
        window.set<int>(0, 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        const int one = 1;
        for (int round = 1; round <= 2; ++round) {
            const bool locks_each = round == 2;  // instead of one flush after another
            if (!locks_each) OK(MPI_Win_lock_all(0, window.win()));
            if (rank() == 1) {
                if (locks_each) OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win()));
                OK(MPI_Accumulate(&one, 1, MPI_INT, 0, window.at(0, 0), 1, MPI_INT, MPI_SUM,
                                  window.win()));
                if (locks_each) OK(MPI_Win_unlock(0, window.win()));
            }
            for (int seen = 0; rank() == 0 && seen < round;) {
                if (locks_each) OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win()));
                OK(MPI_Fetch_and_op(nullptr, &seen, MPI_INT, 0, window.at(0, 0), MPI_NO_OP,
                                    window.win()));
                OK(locks_each ? MPI_Win_unlock(0, window.win()) : MPI_Win_flush(0, window.win()));
            }
            if (!locks_each) OK(MPI_Win_unlock_all(window.win()));
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    about("");
}
