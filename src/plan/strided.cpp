// SPDX-License-Identifier: BSD-3-Clause
//
// Figures of an H200 (docs/design/strided.md): a copy of rows takes 1.2 ns more for each row of
// up to 128 bytes, into the device more for narrow ones (16 ns for one byte, 2 for eight); of
// several in a row each takes twice what another plain copy takes.
#include "plan/strided.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

// What each set costs that a kernel reads in a table (device/cuda/row_tables.hpp).
constexpr double kSetOfTable = 2;
// Rows as wide as this go at the rate of the link.
constexpr Bytes kWideRow = 256;
// Into the device narrow rows are dearer: by 1 + this / width.
constexpr double kNarrowRow = 12;
constexpr double kMeasuredRow = 1 + kNarrowRow / 8;
// A block that the processor packs.
constexpr double kPackedBlock = 3;

double further(Bytes count, double price) {
    return static_cast<double>(count - std::min<Bytes>(count, 1)) * price;
}

double time_of(Bytes bytes, double rate) {
    return static_cast<double>(transfer_time(bytes, rate));
}

double time_of_rows(const device::GpuFacts& gpu, const StridedPiece& piece) {
    const Bytes width = piece.bytes / std::max<Bytes>(piece.rows, 1);
    double row = piece.out ? gpu.row_ns
                           : gpu.row_into_ns / kMeasuredRow *
                                 (1 + kNarrowRow / static_cast<double>(std::max<Bytes>(width, 1)));
    if (width >= kWideRow) row = 0;
    return further(piece.sets, 2 * static_cast<double>(gpu.chunk_cost)) + further(piece.rows, row) +
           time_of(piece.bytes, piece.out ? gpu.d2h_bytes_per_second : gpu.h2d_bytes_per_second);
}

double time_of_kernel(const device::GpuFacts& gpu, const StridedPiece& piece, bool turn) {
    const Bytes sets = piece.boxes > 0 ? piece.boxes : piece.sets;
    return static_cast<double>(std::max<Nanoseconds>(gpu.kernel_latency - gpu.copy_latency, 0)) +
           further(divide_up(sets, device::kMostSetsOfKernel),
                   static_cast<double>(gpu.kernel_latency)) +
           further(sets, kSetOfTable) + (piece.aside ? static_cast<double>(gpu.copy_latency) : 0) +
           (turn ? static_cast<double>(gpu.queue_turn) : 0) +
           time_of(piece.bytes, piece.out ? gpu.d2h_bytes_per_second : gpu.h2d_bytes_per_second);
}

double time_of_span(const device::GpuFacts& gpu, const StridedPiece& piece) {
    return time_of(piece.span, gpu.pageable_bytes_per_second) +
           time_of(piece.bytes, gpu.host_bytes_per_second) + further(piece.rows, kPackedBlock);
}

}  // namespace

StridedWay strided_way(const device::GpuFacts& gpu, const StridedPiece& piece, Movers movers) {
    const double rows = time_of_rows(gpu, piece);
    double best = rows;
    StridedWay way = StridedWay::rows;
    if (movers != Movers::copy_engines) {
        const double kernel = time_of_kernel(gpu, piece, movers == Movers::kernels_by_turns);
        if (kernel <= best) best = kernel, way = StridedWay::kernel;
    }
    if (piece.out && time_of_span(gpu, piece) < best) way = StridedWay::span;
    return way;
}

}  // namespace gantry::plan
