// SPDX-License-Identifier: BSD-3-Clause
//
// Transfer: runs of one file and the memory that each goes to or comes from, in the order of the
// file. What lies side by side in the file is one system call; short counts and interrupted calls go
// on where they stopped; a read ends at the end of the file (steps.hpp). It needs no engine and no lock:
// threads of a backend, or the kernel, carry transfers out.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"
#include "device/direct_storage.hpp"
#include "io/system.hpp"
#include "plan/io_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gantry::io {

enum class Direction : std::uint8_t { read, write };

struct Segment {
    std::int64_t offset = 0;  // in the file
    std::byte* memory = nullptr;
    Bytes bytes = 0;
    std::int64_t end() const { return offset + static_cast<std::int64_t>(bytes); }
};

struct Transfer {
    int file = -1;
    Direction direction = Direction::read;
    std::vector<Segment> segments = {};  // of rising offsets
    // Reads: bytes between two segments that are read as well, where that saves a call; 0: none.
    Bytes sieve = 0;
    Bytes sieved = 4 * kMiB;  // what is read at once with its gaps, at most
    // Where the memory is a GPU's: who moves it, and the file's handle there.
    device::DirectStorage* storage = nullptr;
    void* storage_file = nullptr;
    bool ring_allowed = true;  // where the kernel gives one
    // --- how it ended
    Bytes moved = 0;
    std::int64_t failed = 0;  // -errno of the first call that failed
    std::int64_t failed_at = 0;
    bool met_end = false;     // of the file
    std::int64_t end_at = 0;  // where it was met
    plan::IoCarrierPlan carrier = {};

    Bytes bytes() const;
};

void carry_out(System& system, Transfer& transfer);
// A read of one call that the system has in memory is carried out; false: nothing happened.
bool read_now(System& system, Transfer& transfer);

// "writing 10 bytes at byte 5 of ..." of a transfer that failed.
Status outcome_of(const Transfer& transfer, std::string_view path);

}  // namespace gantry::io
