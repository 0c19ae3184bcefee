// SPDX-License-Identifier: BSD-3-Clause
//
// Windows for tests: made by every call that makes one, on memory of every kind.
#pragma once

#include "gpu.hpp"
#include "test.hpp"

#include <cstring>
#include <memory>
#include <vector>

namespace mpi_tests {

// One window of `bytes` on each rank.
class Window {
  public:
    enum class Made { create, allocate, shared, dynamic };

    Window(Made how, std::size_t bytes, Kind kind = Kind::host, int unit = 1) {
        const auto size = static_cast<MPI_Aint>(bytes);
        switch (how) {
            case Made::create:
                memory_ = std::make_unique<Memory>(kind, bytes);
                base_ = memory_->data();
                OK(MPI_Win_create(base_, size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win_));
                break;
            case Made::allocate:
                OK(MPI_Win_allocate(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_));
                break;
            case Made::shared:
                OK(MPI_Win_allocate_shared(size, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base_,
                                           &win_));
                break;
            case Made::dynamic:
                memory_ = std::make_unique<Memory>(kind, bytes);
                base_ = memory_->data();
                OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win_));
                OK(MPI_Win_attach(win_, base_, size));
                dynamic_ = true;
                break;
        }
        bases_.resize(static_cast<std::size_t>(mpi_tests::size()));
        MPI_Aint mine = 0;
        OK(MPI_Get_address(base_, &mine));
        OK(MPI_Allgather(&mine, 1, MPI_AINT, bases_.data(), 1, MPI_AINT, MPI_COMM_WORLD));
    }
    ~Window() {
        if (dynamic_) {
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_Win_detach(win_, base_));
        }
        OK(MPI_Win_free(&win_));
        CHECK(win_ == MPI_WIN_NULL);
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    MPI_Win win() const { return win_; }
    // The displacement of byte `offset` at that rank, with a unit of one byte.
    MPI_Aint at(int target, std::size_t offset) const {
        const auto bytes = static_cast<MPI_Aint>(offset);
        return dynamic_ ? MPI_Aint_add(bases_[static_cast<std::size_t>(target)], bytes) : bytes;
    }
    template <class T>
    void set(std::size_t index, T value) {
        if (memory_ != nullptr)
            memory_->write(&value, sizeof value, index * sizeof value);
        else
            std::memcpy(static_cast<char*>(base_) + index * sizeof value, &value, sizeof value);
    }
    template <class T>
    T value(std::size_t index) const {
        T value;
        if (memory_ != nullptr)
            memory_->read(&value, sizeof value, index * sizeof value);
        else
            std::memcpy(&value, static_cast<char*>(base_) + index * sizeof value, sizeof value);
        return value;
    }
    void* base() const { return base_; }
    void read(void* to, std::size_t bytes, std::size_t offset) const {
        if (memory_ != nullptr)
            memory_->read(to, bytes, offset);
        else
            std::memcpy(to, static_cast<char*>(base_) + offset, bytes);
    }

  private:
    MPI_Win win_ = MPI_WIN_NULL;
    void* base_ = nullptr;
    std::unique_ptr<Memory> memory_;
    std::vector<MPI_Aint> bases_;
    bool dynamic_ = false;
};

// Whether ranks of this node share memory; not, where the network carries everything.
inline bool node_shares_memory() {
    const char* shm = std::getenv("GANTRY_SHM");
    return shm == nullptr || std::strcmp(shm, "off") != 0;
}

inline std::vector<Window::Made> every_made() {
    std::vector<Window::Made> all{Window::Made::create, Window::Made::allocate,
                                  Window::Made::dynamic};
    if (node_shares_memory()) all.push_back(Window::Made::shared);
    return all;
}

}  // namespace mpi_tests
