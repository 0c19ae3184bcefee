// SPDX-License-Identifier: BSD-3-Clause
#include "rma/process_memory.hpp"

#include "base/process_memory.hpp"
#include "layout/rows.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace gantry::rma {
namespace {

// What one call takes (IOV_MAX), and bytes of it (the kernel moves 2 GiB at most).
constexpr std::size_t kMostRuns = 1024;
constexpr Bytes kMostBytes = kGiB;

Status move(ProcessAccess way, int process, std::span<iovec> remote, std::span<iovec> local,
            Bytes bytes) {
    const int why = access_process(way, process, remote, local);
    if (why == 0) return success();
    return failure(why == ESRCH ? MPI_ERR_PROC_ABORTED : MPI_ERR_OTHER,
                   "{} {} bytes of a window of process {}: {}",
                   way == ProcessAccess::read ? "reading" : "writing", bytes, process,
                   std::strerror(why));
}

Status move_run(ProcessAccess way, int process, std::byte* address, Bytes bytes,
                std::byte* packed) {
    for (Bytes first = 0; first < bytes; first += kMostBytes) {
        const Bytes some = std::min(kMostBytes, bytes - first);
        iovec there{address + first, some}, here{packed + first, some};
        GANTRY_TRY(move(way, process, {&there, 1}, {&here, 1}, some));
    }
    return success();
}

// Rows that follow each other in the other process need not do so in packed memory.
Status move_rows(ProcessAccess way, int process, const transfer::Buffer& buffer, Bytes first,
                 Bytes bytes, std::byte* packed) {
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

Status move(ProcessAccess way, int process, const transfer::Buffer& buffer, Bytes first,
            Bytes bytes, std::byte* packed) {
    if (bytes == 0) return success();
    if (buffer.contiguous()) return move_run(way, process, buffer.data() + first, bytes, packed);
    return move_rows(way, process, buffer, first, bytes, packed);
}

}  // namespace

Status write_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                     const std::byte* packed) {
    return move(ProcessAccess::write, process, buffer, first, bytes,
                const_cast<std::byte*>(packed));
}

Status read_process(int process, const transfer::Buffer& buffer, Bytes first, Bytes bytes,
                    std::byte* packed) {
    return move(ProcessAccess::read, process, buffer, first, bytes, packed);
}

}  // namespace gantry::rma
