// SPDX-License-Identifier: BSD-3-Clause
//
// A word of memory that both ranks of a node see without MPI: what a rank looks at that "computes".
#pragma once

#include "test.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace mpi_tests {

inline constexpr auto kPatience = std::chrono::seconds(20);

// A word that both ranks see, without MPI.
class SharedWord {
  public:
    SharedWord() {
        long place[2] = {getpid(), -1};
        if (rank() == 0) {
            place[1] = memfd_create("word", 0);
            CHECK(ftruncate(static_cast<int>(place[1]), 4096) == 0);
        }
        OK(MPI_Bcast(place, 2, MPI_LONG, 0, MPI_COMM_WORLD));
        const std::string path =
            "/proc/" + std::to_string(place[0]) + "/fd/" + std::to_string(place[1]);
        std::FILE* file = std::fopen(path.c_str(), "r+");
        if (file == nullptr) {
            fail(__FILE__, __LINE__, path + " cannot be opened");
            std::abort();
        }
        word_ = static_cast<std::atomic<unsigned>*>(
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0));
        std::fclose(file);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank() == 0) close(static_cast<int>(place[1]));
    }
    ~SharedWord() { munmap(word_, 4096); }
    SharedWord(const SharedWord&) = delete;
    SharedWord& operator=(const SharedWord&) = delete;

    void set(unsigned value) { word_->store(value, std::memory_order_release); }
    void add(unsigned value) { word_->fetch_add(value, std::memory_order_acq_rel); }
    // Computes until the word has this value; false when it never came.
    bool compute_until(unsigned value) const {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (word_->load(std::memory_order_acquire) != value)
            if (std::chrono::steady_clock::now() > end) return false;
        return true;
    }

  private:
    std::atomic<unsigned>* word_;
};

}  // namespace mpi_tests
