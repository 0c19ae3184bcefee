// SPDX-License-Identifier: BSD-3-Clause
//
// Where the fields lie and who computes: the host, or a GPU. On the host every call is done when it
// returns; on a GPU there are two streams, so that inner cells are computed while the edge is exchanged:
//
//   edge     what others wait for: outer cells, packing, copies to the host and back
//   inside   inner cells
#pragma once

#include "driver.hpp"
#include "kernel.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gantry::apps {

enum class Memory { host, device };
enum class Stream { edge, inside };

// A box of bytes as a strided copy sees it.
struct Rows {
    std::size_t width, rows, planes;
    std::size_t row_pitch, plane_rows;  // of the strided end: bytes, and rows from plane to plane
};

class Machine {
  public:
    // `images`: the PTX that has the kernels. `number`: this process's among those of its node.
    Machine(Memory memory, int number, std::vector<const char*> images);
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    Memory memory() const { return memory_; }
    bool on_device() const { return memory_ == Memory::device; }
    std::string name() const;

    // Memory for fields, zeroed by nobody; and page-locked memory of the host.
    void* allocate(std::size_t bytes);
    void release(void* fields);
    void* allocate_host(std::size_t bytes);
    void release_host(void* memory);

    // Done when they return.
    void upload(void* to, const void* from, std::size_t bytes);
    void download(void* to, const void* from, std::size_t bytes);
    // In the order of the edge's stream. The host's end is page-locked memory.
    void start_upload(void* to, const void* from, std::size_t bytes);
    void start_download(void* to, const void* from, std::size_t bytes);
    void start_strided_upload(void* to, const void* packed, const Rows& rows);
    void start_strided_download(void* packed, const void* from, const Rows& rows);

    void launch(Stream stream, const Kernel& kernel, const void* work, Whole items);
    void wait(Stream stream);
    // What comes next on either stream waits for what both have been given.
    void join();

    // Says when what the edge's stream was given by now is done.
    class Mark {
      public:
        explicit Mark(Machine& machine);
        ~Mark();
        Mark(Mark&& other) noexcept : event_(other.event_), stream_(other.stream_) {
            other.event_ = nullptr;
        }
        void record();
        bool done() const;

      private:
        friend class Machine;
        CUevent event_ = nullptr;
        CUstream stream_ = nullptr;
    };

  private:
    CUstream of(Stream stream) const { return stream == Stream::edge ? edge_ : inside_; }
    CUfunction function(const Kernel& kernel);

    Memory memory_;
    CUstream edge_ = nullptr, inside_ = nullptr;
    CUevent edge_event_ = nullptr, inside_event_ = nullptr;
    std::vector<CUmodule> modules_;
    std::map<const Kernel*, CUfunction> functions_;
};

}  // namespace gantry::apps
