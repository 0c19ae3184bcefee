// SPDX-License-Identifier: BSD-3-Clause
//
// How reads and writes of files go: pure functions, and nothing else decides. One rank's access goes
// straight between its memory (a GPU's, where GPUDirect Storage is) and the file, or packed through scratch memory, or through slots where
// the memory is a device's. Accesses of several ranks go each alone, or together in two phases: each
// of a few ranks (aggregators) serves one part of the file, and the others exchange bytes with it.
#pragma once

#include "base/units.hpp"
#include "plan/plan.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gantry::plan {

// What the program, by hints, leaves to us or not.
enum class IoSwitch : std::uint8_t { automatic, enable, disable };

enum class IoWay : std::uint8_t { direct, packed, slots, storage };

struct IoQuestion {
    bool writes = false;
    bool on_device = false;
    bool strided_memory = false;
    bool in_memory = false;  // the file: tmpfs
    Bytes bytes = 0;
    // The mean of the runs, in bytes.
    Bytes memory_run = 0, file_run = 0, file_gap = 0;
    Bytes largest_slot = 0;
    bool direct_storage = false;  // the file and the GPU reach each other (GPUDirect Storage)
    IoSwitch sieve = IoSwitch::automatic;
};

struct IoPlan {
    IoWay way = IoWay::direct;
    Bytes piece = 0;          // bytes of one transfer
    int depth = 1;            // transfers in flight at most
    Bytes sieve = 0;          // reads: gaps up to so many bytes are read as well
    Bytes sieved = 4 * kMiB;  // bytes that are read at once with their gaps, at most
    bool at_once = false;  // by the caller, piece by piece: a thread would only make the same copy
    CopyEngine engine = CopyEngine::cpu;  // between memory and slots
    const char* why = "";
};

// What a read of another place in the file costs, in bytes that are read meanwhile.
inline constexpr Bytes kWorthACall = 16 * kKiB;
// Shorter runs of a file are not worth a call of cuFile, which registers memory or uses slots of its own.
inline constexpr Bytes kStorageRun = 64 * kKiB;
// A read of so many bytes is tried without a thread first, in case the system has them in memory.
inline constexpr Bytes kMostReadNow = 64 * kKiB;

IoPlan io_plan(const IoQuestion& question);
const char* name(IoWay way);
// Without the reason: "packed by the processor, pieces of 1 MiB, 4 in flight".
std::string describe(const IoPlan& plan);

// Who makes the system calls of a piece: whoever drives the engine, where they cannot wait for a device;
// the kernel, that is given them in a ring (io_uring); or threads of the library.
enum class IoCarrier : std::uint8_t { caller, ring, threads };

struct IoCarrierQuestion {
    bool has_ring = false;        // the kernel gives one
    bool ring_allowed = true;     // by hint
    bool direct_storage = false;  // the piece goes by GPUDirect Storage
    bool one_call = true;         // the whole piece, else several
};

struct IoCarrierPlan {
    IoCarrier carrier = IoCarrier::caller;
    const char* why = "";  // empty: there is no choice
};

// Of a piece that may have to wait.
IoCarrierPlan io_carrier(const IoCarrierQuestion& question);
const char* name(IoCarrier carrier);

// What each rank tells the others of its access. Plain data: it travels as bytes.
struct IoExtent {
    std::int64_t low = 0, high = 0;  // of the file
    Bytes bytes = 0;                 // 0: it has none, and the rest means nothing
    Bytes run = 0;                   // mean, in the file; 0: only alone
    // Reads of files in memory: what a read of its own would copy, with the gaps that it takes along; 0: not
    // known.
    Bytes with_gaps = 0;
    bool sees_windows = false;  // it can copy its bytes from and into memory of any other rank
};

struct CollectiveIoQuestion {
    bool writes = false;
    bool atomic = false;                // each rank's bytes at once, or not at all
    bool in_memory = false;             // the file: tmpfs
    std::span<const IoExtent> extents;  // by rank
    std::span<const int> nodes;         // by rank
    IoSwitch together = IoSwitch::automatic;
    int aggregators = 0;  // at most, by hint; 0: as many as suit
    Bytes window = 0;     // bytes that an aggregator holds at once
    Bytes stripe = 0;     // parts of the file begin at multiples of it; 0: not known
};

struct CollectiveIoPlan {
    bool together = false;
    const char* why = "";
    std::vector<int> aggregators;  // ranks, in the order of the parts that they serve
    std::int64_t low = 0, high = 0;
    Bytes part = 0;    // of the file, served by one aggregator
    Bytes window = 0;  // of a part, at once
    Bytes sieve = 0;   // reads: gaps in a window up to so many bytes are read as well
    bool at_once =
        false;  // windows go to and from the file by the aggregators, not by their threads
    bool on_node = false;  // windows lie in memory that all ranks see: each copies its bytes itself
    std::int64_t part_begin(std::size_t aggregator) const {
        const std::int64_t begin = low + static_cast<std::int64_t>(part * aggregator);
        return begin < high ? begin : high;
    }
};

CollectiveIoPlan collective_io_plan(const CollectiveIoQuestion& question);
// Of one that goes together; `on_node`: in the end windows could be shared.
std::string describe(const CollectiveIoPlan& plan, bool on_node);

}  // namespace gantry::plan
