// SPDX-License-Identifier: BSD-3-Clause
//
// What a window says of itself, and requests of one-sided operations.
#include "rma.hpp"

#include "refused.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace mpi_tests;

namespace {

int deletions = 0;
int delete_attribute(MPI_Win, int, void* value, void* extra) {
    CHECK(value == extra);
    ++deletions;
    return MPI_SUCCESS;
}

template <class T>
T attribute(MPI_Win win, int key) {
    void* value = nullptr;
    int flag = 0;
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK_EQ(flag, 1);
    return *static_cast<T*>(value);
}

std::string hint(MPI_Win win, const char* key) {
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    char value[MPI_MAX_INFO_VAL] = "";
    int length = sizeof value, flag = 0;
    OK(MPI_Info_get_string(info, key, &length, value, &flag));
    OK(MPI_Info_free(&info));
    return flag != 0 ? value : "none";
}

}  // namespace

// endings_test.py looks at what is explained of them.
MPI_CASE(some_windows, 2) {
    for (const char* name : {"", "halo", ""}) {
        Window window(Window::Made::allocate, 64, Kind::host, 1);
        if (*name != '\0') OK(MPI_Win_set_name(window.win(), name));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    int sent = rank(), got = -1;
    OK(MPI_Sendrecv(&sent, 1, MPI_INT, 1 - rank(), 0, &got, 1, MPI_INT, 1 - rank(), 0,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQ(got, 1 - rank());
}

MPI_CASE(rma_windows_say_what_they_are, 2) {
    const std::pair<Window::Made, int> flavors[] = {
        {Window::Made::create, MPI_WIN_FLAVOR_CREATE},
        {Window::Made::allocate, MPI_WIN_FLAVOR_ALLOCATE},
        {Window::Made::dynamic, MPI_WIN_FLAVOR_DYNAMIC}};
    for (const auto& [how, flavor] : flavors) {
        Window window(how, 64, Kind::host, 4);
        const MPI_Win win = window.win();
        CHECK_EQ(attribute<int>(win, MPI_WIN_CREATE_FLAVOR), flavor);
        CHECK_EQ(attribute<int>(win, MPI_WIN_MODEL), MPI_WIN_UNIFIED);
        const bool dynamic = how == Window::Made::dynamic;
        CHECK_EQ(attribute<MPI_Aint>(win, MPI_WIN_SIZE), dynamic ? 0 : 64);
        CHECK_EQ(attribute<int>(win, MPI_WIN_DISP_UNIT), dynamic ? 1 : 4);
        void* base = nullptr;
        int flag = 0;
        OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag));
        CHECK(base == (dynamic ? MPI_BOTTOM : window.base()));
        MPI_Group mine, world;
        OK(MPI_Win_get_group(win, &mine));
        OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
        int same = -1;
        OK(MPI_Group_compare(mine, world, &same));
        CHECK_EQ(same, MPI_IDENT);
        OK(MPI_Group_free(&mine));
        OK(MPI_Group_free(&world));
        OK(MPI_Win_set_name(win, "matrix"));
        char name[MPI_MAX_OBJECT_NAME];
        int length = 0;
        OK(MPI_Win_get_name(win, name, &length));
        CHECK(std::string(name) == "matrix" && length == 6);
        OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
        CHECK(std::string(name) == "MPI_WIN_NULL" && length == 12);
        CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win);
        CHECK(hint(win, "no_locks") == "false");
        CHECK(hint(win, "accumulate_ordering") == "rar,raw,war,waw");
        CHECK(hint(win, "same_size") == "false");
    }
}

MPI_CASE(rma_attributes_of_windows, 1) {
    int key = MPI_KEYVAL_INVALID, mark = 0;
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_attribute, &key, &mark));
    {
        Window window(Window::Made::allocate, 8);
        OK(MPI_Win_set_attr(window.win(), key, &mark));
        void* value = nullptr;
        int flag = 0;
        OK(MPI_Win_get_attr(window.win(), key, &value, &flag));
        CHECK(flag == 1 && value == &mark);
        OK(MPI_Win_delete_attr(window.win(), key));
        CHECK_EQ(deletions, 1);
        OK(MPI_Win_get_attr(window.win(), key, &value, &flag));
        CHECK_EQ(flag, 0);
        OK(MPI_Win_set_attr(window.win(), key, &mark));
    }
    CHECK_EQ(deletions, 2);  // with the window
    OK(MPI_Win_free_keyval(&key));
}

MPI_CASE(rma_shared_windows_are_one_memory, 3) {
    if (!node_shares_memory()) skip("ranks share no memory with GANTRY_SHM=off");
    int* mine = nullptr;
    MPI_Win win;
    // Rank 1 has nothing of its own.
    const MPI_Aint bytes = rank() == 1 ? 0 : 8 + 4 * rank();
    OK(MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win));
    int* all = nullptr;
    MPI_Aint size_there = -1;
    int unit = -1;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size_there, &unit, &all));
    CHECK(size_there == 8 && unit == 4);
    int* last = nullptr;
    OK(MPI_Win_shared_query(win, 2, &size_there, &unit, &last));
    CHECK(size_there == 16 && last == all + 2);  // parts follow each other
    int* nothing = all;
    OK(MPI_Win_shared_query(win, 1, &size_there, &unit, &nothing));
    CHECK(size_there == 0 && nothing == nullptr);
    OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
    if (rank() == 0) last[3] = 4711;
    OK(MPI_Win_sync(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    if (rank() == 2) CHECK_EQ(mine[3], 4711);
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Win_free(&win));
}

// Every call that allocates keeps it, whatever pages are, and on each rank the largest that any asks for.
MPI_CASE(rma_memory_is_as_aligned_as_it_is_asked_for, 2) {
    for (const int shift : {7, 12, 17, 22}) {
        const auto alignment = std::size_t{1} << shift;
        const auto is_aligned = [alignment](const void* address) {
            return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
        };
        MPI_Info info;
        OK(MPI_Info_create(&info));
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", std::to_string(alignment).c_str()));
        int* memory = nullptr;
        OK(MPI_Alloc_mem(100, info, &memory));
        CHECK(is_aligned(memory));
        OK(MPI_Free_mem(memory));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
        for (const MPI_Info asked : {info, rank() == 0 ? info : MPI_INFO_NULL}) {
            for (const bool shared : {false, true}) {
                if (shared && !node_shares_memory()) continue;
                MPI_Win win;
                OK((shared ? MPI_Win_allocate_shared : MPI_Win_allocate)(
                    100, 1, asked, MPI_COMM_WORLD, &memory, &win));
                if (asked == info) CHECK(is_aligned(memory));
                const int mine = 7 + rank();
                OK(MPI_Win_fence(0, win));
                OK(MPI_Put(&mine, 1, MPI_INT, 1 - rank(), 96, 1, MPI_INT, win));
                OK(MPI_Win_fence(0, win));
                CHECK_EQ(memory[24], 8 - rank());
                OK(MPI_Win_free(&win));
                if (shared) continue;
                OK(MPI_Win_allocate(100, 1, asked, MPI_COMM_SELF, &memory, &win));
                if (asked == info) CHECK(is_aligned(memory));
                OK(MPI_Win_free(&win));
            }
        }
        OK(MPI_Info_free(&info));
    }
}

// Each process of a node has its own memory mapped, and by MPI_PROC_NULL all of them mean the same one.
MPI_CASE(rma_memory_of_the_program_is_not_shared, 2) {
    std::vector<char> memory(static_cast<std::size_t>(10 + rank()));
    MPI_Win win;
    OK(MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL,
                      MPI_COMM_WORLD, &win));
    const auto query = [win](int of_rank) {
        MPI_Aint bytes = -1;
        int unit = -1;
        char* base = nullptr;
        OK(MPI_Win_shared_query(win, of_rank, &bytes, &unit, &base));
        CHECK_EQ(base != nullptr, bytes > 0);
        return std::pair(base, bytes);
    };
    CHECK(query(rank()) == std::pair(memory.data(), static_cast<MPI_Aint>(memory.size())));
    CHECK_EQ(query(1 - rank()).second, 0);
    const bool mine = rank() == 0 || !node_shares_memory();
    CHECK_EQ(query(MPI_PROC_NULL).second, mine ? static_cast<MPI_Aint>(memory.size()) : 0);
    OK(MPI_Win_free(&win));
}

MPI_CASE(rma_requests_of_operations, 2) {
    for (Window::Made how : every_made()) {
        Window window(how, 64);
        window.set<int>(0, 10 * rank());
        window.set<int>(1, 5);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        const int other = 1 - rank(), three = 3;
        int seen = -1, before = -1;
        OK(MPI_Win_lock_all(0, window.win()));
        MPI_Request requests[4];
        OK(MPI_Rget(&seen, 1, MPI_INT, other, window.at(other, 0), 1, MPI_INT, window.win(),
                    &requests[0]));
        OK(MPI_Rput(&three, 1, MPI_INT, other, window.at(other, 8), 1, MPI_INT, window.win(),
                    &requests[1]));
        OK(MPI_Raccumulate(&three, 1, MPI_INT, other, window.at(other, 4), 1, MPI_INT, MPI_SUM,
                           window.win(), &requests[2]));
        OK(MPI_Rget_accumulate(&three, 1, MPI_INT, &before, 1, MPI_INT, other, window.at(other, 4),
                               1, MPI_INT, MPI_PROD, window.win(), &requests[3]));
        OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        CHECK_EQ(seen, 10 * other);
        CHECK_EQ(before, 8);
        OK(MPI_Win_unlock_all(window.win()));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK_EQ(window.value<int>(1), 24);
        CHECK_EQ(window.value<int>(2), 3);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

// Datatypes that are freed before the operation ends, on both sides, longer than a piece.
MPI_CASE(rma_strided_data_of_many_pieces, 2) {
    constexpr int kRows = 20000;
    for (Window::Made how : every_made()) {
        Window window(how, 4 * kRows * sizeof(int));
        std::vector<int> mine(3 * kRows), back(4 * kRows, -1);
        for (std::size_t i = 0; i < mine.size(); ++i)
            mine[i] = static_cast<int>(i) + 100000 * rank();
        for (std::size_t i = 0; i < 4 * kRows; ++i)
            window.set<int>(i, -1);
        MPI_Datatype thirds, quarters;
        OK(MPI_Type_vector(kRows, 1, 3, MPI_INT, &thirds));
        OK(MPI_Type_vector(kRows, 1, 4, MPI_INT, &quarters));
        OK(MPI_Type_commit(&thirds));
        OK(MPI_Type_commit(&quarters));
        OK(MPI_Win_fence(0, window.win()));
        const int other = 1 - rank();
        OK(MPI_Put(mine.data(), 1, thirds, other, window.at(other, 4), 1, quarters, window.win()));
        OK(MPI_Accumulate(mine.data(), 1, thirds, other, window.at(other, 8), 1, quarters,
                          MPI_REPLACE, window.win()));
        OK(MPI_Type_free(&thirds));
        OK(MPI_Win_fence(0, window.win()));
        OK(MPI_Get(back.data(), 1, quarters, other, window.at(other, 4), 1, quarters,
                   window.win()));
        OK(MPI_Type_free(&quarters));
        OK(MPI_Win_fence(0, window.win()));
        int wrong = 0;
        for (std::size_t i = 0; i < kRows; ++i) {
            const int expected = static_cast<int>(3 * i) + 100000 * other;
            wrong += window.value<int>(4 * i) != -1;
            wrong += window.value<int>(4 * i + 1) != expected;
            wrong += window.value<int>(4 * i + 2) != expected;
            wrong += back[4 * i] != static_cast<int>(3 * i) + 100000 * rank();
        }
        CHECK_EQ(wrong, 0);
    }
}

// Neighbouring regions are attached one by one, as a program allocates them, and read in one go.
MPI_CASE(rma_operations_span_attached_regions, 2) {
    int numbers[8] = {};
    MPI_Win win;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, numbers + 4, 2 * sizeof(int)));
    OK(MPI_Win_attach(win, numbers, 4 * sizeof(int)));
    MPI_Aint mine = 0, places[2];
    OK(MPI_Get_address(numbers, &mine));
    OK(MPI_Allgather(&mine, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD));
    const int other = 1 - rank(), sent[6] = {1, 2, 3, 4, 5, 6};
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(sent, 6, MPI_INT, other, places[other], 6, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 6; ++i)
        CHECK_EQ(numbers[i], i + 1);
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win));
    // One more than is attached.
    int code = MPI_Put(sent, 4, MPI_INT, other, MPI_Aint_add(places[other], 3 * sizeof(int)), 4,
                       MPI_INT, win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(other, win);
    CHECK_EQ(error_class(code), MPI_ERR_RMA_RANGE);
    MPI_Win_unlock(other, win);
    CHECK_EQ(numbers[5], 6);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
}
