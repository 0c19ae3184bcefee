// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_THREAD_MULTIPLE: what the cases of threads_*.cpp have in common.
#pragma once

#include "test.hpp"

#include <functional>
#include <thread>
#include <vector>

namespace mpi_tests {

// Runs `work(thread)` in that many threads of this rank, beside the main thread that waits for
// their ends.
inline void in_threads(int number, const std::function<void(int)>& work) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < number; ++thread)
        threads.emplace_back(work, thread);
    for (std::thread& thread : threads)
        thread.join();
}

// Around a case: MPI_THREAD_MULTIPLE is asked for and given.
struct Threaded {
    Threaded() { start_mpi(MPI_THREAD_MULTIPLE); }
    ~Threaded() { OK(MPI_Finalize()); }
    Threaded(const Threaded&) = delete;
    Threaded& operator=(const Threaded&) = delete;
};

inline std::vector<int> numbers(std::size_t count, int first) {
    std::vector<int> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = first + static_cast<int>(i);
    return values;
}

}  // namespace mpi_tests
