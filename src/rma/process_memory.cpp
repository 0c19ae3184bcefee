// SPDX-License-Identifier: BSD-3-Clause
#include "rma/process_memory.hpp"

#include "layout/rows.hpp"

#include <mpi.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::rma {
namespace {

enum class Way : std::uint8_t { read, write };

// What one call takes (IOV_MAX), and bytes of it (the kernel moves 2 GiB at most).
constexpr std::size_t kMostRuns = 1024;
constexpr Bytes kMostBytes = kGiB;

Status refused(Way way, int process, Bytes bytes) {
    const int why = errno;
    return failure(why == ESRCH ? MPI_ERR_PROC_ABORTED : MPI_ERR_OTHER,
                   "{} {} bytes of a window of process {}: {}",
                   way == Way::read ? "reading" : "writing", bytes, process, std::strerror(why));
}

// Bytes of the other process and where they lie here, each in pieces; the pieces of the two sides have
// the same length in all.
Status move(Way way, int process, std::span<const iovec> remote, std::span<const iovec> local,
            Bytes bytes) {
    const ssize_t moved = way == Way::read ? process_vm_readv(process, local.data(), local.size(),
                                                              remote.data(), remote.size(), 0)
                                           : process_vm_writev(process, local.data(), local.size(),
                                                               remote.data(), remote.size(), 0);
    if (moved >= 0 && static_cast<Bytes>(moved) == bytes) return success();
    // A part of it: what follows is not there.
    if (moved >= 0) errno = EFAULT;
    return refused(way, process, bytes);
}

Status move_run(Way way, int process, std::byte* address, Bytes bytes, std::byte* packed) {
    for (Bytes first = 0; first < bytes; first += kMostBytes) {
        const Bytes some = std::min(kMostBytes, bytes - first);
        const iovec there{address + first, some}, here{packed + first, some};
        GANTRY_TRY(move(way, process, {&there, 1}, {&here, 1}, some));
    }
    return success();
}

// Rows that follow each other in the other process need not do so in packed memory.
Status move_rows(Way way, int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                 std::byte* packed) {
    std::array<iovec, kMostRuns> there, here;
    std::size_t used = 0;
    Bytes gathered = 0;
    auto* const base = static_cast<std::byte*>(buffer.address);
    layout::RowWalk walk(*buffer.layout, first, bytes);
    for (layout::Rows rows; walk.next(rows);) {
        for (Bytes row = 0; row < rows.count; ++row) {
            there[used] = {base + rows.offset + static_cast<std::ptrdiff_t>(row * rows.pitch),
                           rows.width};
            here[used] = {packed + rows.packed + row * rows.packed_pitch, rows.width};
            ++used;
            gathered += rows.width;
            if (used < kMostRuns) continue;
            GANTRY_TRY(move(way, process, {there.data(), used}, {here.data(), used}, gathered));
            used = 0;
            gathered = 0;
        }
    }
    if (used == 0) return success();
    return move(way, process, {there.data(), used}, {here.data(), used}, gathered);
}

Status move(Way way, int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
            std::byte* packed) {
    if (bytes == 0) return success();
    if (buffer.contiguous()) return move_run(way, process, buffer.data() + first, bytes, packed);
    return move_rows(way, process, buffer, first, bytes, packed);
}

}  // namespace

Status write_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                     const std::byte* packed) {
    return move(Way::write, process, buffer, first, bytes, const_cast<std::byte*>(packed));
}

Status read_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                    std::byte* packed) {
    return move(Way::read, process, buffer, first, bytes, packed);
}

Probe own_probe() {
    // Another process with the same address space lay-out, or in another process namespace, has
    // another number there.
    static const std::uint64_t number = static_cast<std::uint64_t>(getpid()) << 32 ^
                                        reinterpret_cast<std::uintptr_t>(&number) ^
                                        0x9e37'79b9'7f4a'7c15;
    return {getpid(), reinterpret_cast<std::uintptr_t>(&number), number};
}

bool reaches(const Probe& probe) {
    std::uint64_t seen = 0;
    const transfer::Buffer there{reinterpret_cast<void*>(probe.address), 0, nullptr};
    return probe.process != 0 &&
           read_process(probe.process, there, 0, sizeof seen, reinterpret_cast<std::byte*>(&seen))
               .ok() &&
           seen == probe.number;
}

}  // namespace gantry::rma
