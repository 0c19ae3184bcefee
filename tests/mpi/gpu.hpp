// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of every kind for tests, through the driver interface alone (dlopen), so that the same
// program runs on the simulated and on a real GPU.
#pragma once

#include "device/cuda/driver_abi.h"
#include "pattern.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mpi_tests {

// pool: of the device, which cannot be shared; shared_pool: made for it.
enum class Kind { host, pinned, registered, device, managed, pool, vmm, shared_pool };
const char* name(Kind kind);
std::vector<Kind> every_kind();

// The driver of this process, initialised at the first use; skips the case when there is none.
struct Gpu {
    int count = 0;
    bool simulated = false;
    void* library = nullptr;
    template <class Function>
    Function* get(const char* symbol) const {
        return reinterpret_cast<Function*>(find(symbol));
    }
    void* find(const char* symbol) const;
};
const Gpu& gpu();
// Makes the primary context of this device current in this thread.
void use_device(int ordinal);

// A block of memory of one kind; freed at its end.
class Memory {
  public:
    Memory(Kind kind, std::size_t bytes, int device = 0,
           void* where = nullptr);  // where: a wish, Kind::vmm only
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return bytes_; }
    void write(const void* from, std::size_t bytes, std::size_t offset = 0);
    void read(void* to, std::size_t bytes, std::size_t offset = 0) const;
    void fill(unsigned seed);  // a pattern that depends on the seed and the position
    // Compares with the pattern; the first wrong byte, or -1.
    std::ptrdiff_t differs(unsigned seed, std::size_t bytes) const;
    void release();                     // frees now
    void forget() { data_ = nullptr; }  // it went with its context

  private:
    Kind kind_;
    std::byte* data_ = nullptr;
    std::size_t bytes_;
    int device_;
    std::unique_ptr<std::byte[]> host_;
    unsigned long long vmm_handle_ = 0;
    std::size_t vmm_bytes_ = 0;
};

// Skips the case where the GPU is a real one.
void only_on_the_simulator(const char* why = "a real GPU does not count calls");
// Over the two ranks of a case.
std::uint64_t sum_of_both(std::uint64_t mine);

// Calls of one driver entry point in this process since the last reset (simulated GPU only), "*"
// for all.
std::uint64_t calls(const char* symbol);
void reset_calls();
// How many of the calls that read a finished copy, wait for one, or set something up, since the
// last reset.
struct Calls {
    std::uint64_t attribute = 0;    // cuPointerGetAttribute
    std::uint64_t attributes = 0;   // cuPointerGetAttributes
    std::uint64_t copies = 0;       // every cuMemcpy...
    std::uint64_t synchronise = 0;  // stream, event and context
    std::uint64_t set_up =
        0;  // streams, events, contexts, pins, mappings, allocations made or given back
    std::uint64_t ends = 0;     // events and words recorded behind copies
    std::uint64_t queries = 0;  // of events and streams
    std::uint64_t around = 0;   // what each visit to the driver begins and ends with
    std::uint64_t launches = 0;
    std::uint64_t all = 0;
};
Calls calls();
// One operation of a stream of this process that the simulator finished: a copy, unless the kind
// says otherwise.
struct Operations {
    std::uint64_t copies = 0, bytes = 0, flags = 0, others = 0;
};
Operations operations();
void clear_operations();
// What the simulator still holds for this process.
struct Census {
    std::size_t device_ranges = 0, host_ranges = 0, imported_ranges = 0, streams = 0, events = 0;
    bool operator==(const Census&) const = default;
};
Census census();
// Injects a fault (simgpu/README.md); null clears.
void inject(const char* fault);

}  // namespace mpi_tests
