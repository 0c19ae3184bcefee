// SPDX-License-Identifier: BSD-3-Clause
//
// Large puts and gets, and many small puts, in every kind of window. Over the network (net.CASE) large
// ones go straight between the memories of two ranks and small ones share messages.
#include "rma.hpp"
#include "test.hpp"

#include <array>
#include <vector>

using namespace mpi_tests;

namespace {

constexpr int kLarge = 300'001, kSmall = 200;
constexpr std::size_t kBytes = kLarge + kSmall * sizeof(int);

// The bytes that rank `from` writes.
std::vector<char> bytes_of(int from, unsigned round) {
    std::vector<char> bytes(kLarge);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<char>(pattern(3 * round + static_cast<unsigned>(from), i));
    return bytes;
}

void put_all(const Window& window, const std::vector<char>& bytes, const std::vector<int>& numbers,
             int target) {
    OK(MPI_Put(bytes.data(), kLarge, MPI_CHAR, target, window.at(target, 0), kLarge, MPI_CHAR,
               window.win()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        OK(MPI_Put(&numbers[i], 1, MPI_INT, target, window.at(target, kLarge + 3 + i * sizeof(int)),
                   1, MPI_INT, window.win()));
}

void check_here(const Window& window, int from, unsigned round) {
    std::vector<char> got(kLarge);
    window.read(got.data(), got.size(), 0);
    CHECK(got == bytes_of(from, round));
    std::vector<int> numbers(kSmall - 1);
    window.read(numbers.data(), numbers.size() * sizeof(int), kLarge + 3);
    for (std::size_t i = 0; i < numbers.size(); ++i)
        CHECK_EQ(numbers[i], 1000 * from + static_cast<int>(i + round));
}

void exchange(Window::Made made) {
    const Window window(made, kBytes);
    const int next = (rank() + 1) % size(), before = (rank() + size() - 1) % size();
    std::vector<char> again(kLarge);
    std::vector<int> numbers(kSmall - 1);
    for (unsigned round = 0; round < 4; ++round) {
        const bool fences = round % 2 == 0;
        const std::vector<char> bytes = bytes_of(rank(), round);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = 1000 * rank() + static_cast<int>(i + round);
        if (fences)
            OK(MPI_Win_fence(0, window.win()));
        else
            OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window.win()));
        put_all(window, bytes, numbers, next);
        if (fences)
            OK(MPI_Win_fence(0, window.win()));
        else
            OK(MPI_Win_flush(next, window.win()));
        OK(MPI_Get(again.data(), kLarge, MPI_CHAR, next, window.at(next, 0), kLarge, MPI_CHAR,
                   window.win()));
        if (fences)
            OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win()));
        else
            OK(MPI_Win_unlock(next, window.win()));
        CHECK(again == bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        check_here(window, before, round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

}  // namespace

MPI_CASE(rma_large_and_many_in_allocated_windows, 3) {
    exchange(Window::Made::allocate);
}
MPI_CASE(rma_large_and_many_in_created_windows, 3) {
    exchange(Window::Made::create);
}
MPI_CASE(rma_large_and_many_in_dynamic_windows, 2) {
    exchange(Window::Made::dynamic);
}

// Every other number, at the origin and not at the target; and requests for each.
MPI_CASE(rma_large_puts_of_strided_memory, 2) {
    constexpr int kNumbers = 200'000;
    const Window window(Window::Made::create, kNumbers * sizeof(int), Kind::host, sizeof(int));
    const int peer = 1 - rank();
    std::vector<int> source(2 * kNumbers);
    for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<int>(i) + rank();
    MPI_Datatype every_other = MPI_DATATYPE_NULL;
    OK(MPI_Type_vector(kNumbers, 1, 2, MPI_INT, &every_other));
    OK(MPI_Type_commit(&every_other));
    OK(MPI_Win_lock_all(0, window.win()));
    MPI_Request put = MPI_REQUEST_NULL;
    OK(MPI_Rput(source.data(), 1, every_other, peer, 0, kNumbers, MPI_INT, window.win(), &put));
    OK(MPI_Wait(&put, MPI_STATUS_IGNORE));
    OK(MPI_Win_flush_all(window.win()));
    std::vector<int> again(kNumbers);
    MPI_Request get = MPI_REQUEST_NULL;
    OK(MPI_Rget(again.data(), kNumbers, MPI_INT, peer, 0, kNumbers, MPI_INT, window.win(), &get));
    OK(MPI_Wait(&get, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock_all(window.win()));
    OK(MPI_Type_free(&every_other));
    for (std::size_t i = 0; i < again.size(); ++i)
        if (again[i] != source[2 * i]) CHECK_EQ(again[i], source[2 * i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (const std::size_t i : {std::size_t{0}, std::size_t{kNumbers - 1}})
        CHECK_EQ(window.value<int>(i), 2 * static_cast<int>(i) + peer);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}
