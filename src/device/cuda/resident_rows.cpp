// SPDX-License-Identifier: BSD-3-Clause
//
// ResidentCopies: rows of strided memory, cut into items that one block each moves. A strided block of a
// message, or a small MPI_Pack, costs no launch so.
//
//   rows     [set] [set] ...                       a set, or some rows of one
//   planes   [pitches] [planes] [pitches] [planes]   some planes of a set
#include "device/cuda/resident.hpp"

#include "base/clock.hpp"
#include "device/cuda/copies.hpp"
#include "device/together_facts.hpp"

#include <algorithm>
#include <bit>

namespace gantry::device::cuda {
namespace {

// What the threads of a block have in flight at once: four units each (row_units.hpp).
constexpr Bytes kUnitsOfItem = Bytes{4} * kernels::kResidentThreads;
constexpr Bytes kWidestUnit = 16;

Bytes bytes_of_item(const kernels::RowSet& set, const kernels::Planes& planes) {
    Bytes odd = set.destination | set.source | set.width | kWidestUnit;
    if (set.count > 1) odd |= set.destination_pitch | set.source_pitch;
    if (planes.count > 1) odd |= planes.destination_pitch | planes.source_pitch;
    return kUnitsOfItem << std::countr_zero(odd);
}

kernels::RowSet behind(kernels::RowSet set, Bytes destination, Bytes source) {
    set.destination += destination;
    set.source += source;
    return set;
}

// Calls visit(set, planes) for each item; false when a visit was.
template <class Visit>
bool cut(const kernels::RowSet& set, const kernels::Planes& planes, Visit visit) {
    const Bytes most = bytes_of_item(set, planes);
    const Bytes rows = std::max<Bytes>(most / set.width, 1);
    if (rows >= set.count) {
        const Bytes at_once = rows / set.count;
        for (Bytes plane = 0; plane < planes.count; plane += at_once)
            if (!visit(behind(set, plane * planes.destination_pitch, plane * planes.source_pitch),
                       kernels::Planes{std::min<Bytes>(at_once, planes.count - plane),
                                       planes.destination_pitch, planes.source_pitch}))
                return false;
        return true;
    }
    constexpr kernels::Planes kOne{1, 0, 0};
    for (Bytes plane = 0; plane < planes.count; ++plane)
        for (Bytes row = 0; row < set.count; row += rows) {
            kernels::RowSet some =
                behind(set, plane * planes.destination_pitch + row * set.destination_pitch,
                       plane * planes.source_pitch + row * set.source_pitch);
            some.count = std::min<Bytes>(rows, set.count - row);
            if (!visit(some, kOne)) return false;
        }
    return true;
}

// Rows that are long for one block are left to more blocks of a launch.
constexpr Bytes kMostOfRow = 2;

template <class Visit>
bool cut(const Copy& copy, Visit visit) {
    return std::ranges::all_of(copy.rows, [&](const Rows& rows) {
        const kernels::RowSet set{
            device_address(copy.destination) + static_cast<CUdeviceptr>(rows.destination),
            device_address(copy.source) + static_cast<CUdeviceptr>(rows.source),
            rows.width,
            rows.count,
            rows.destination_pitch,
            rows.source_pitch};
        const kernels::Planes planes{rows.planes, rows.destination_plane, rows.source_plane};
        return rows.bytes() > 0 && rows.width <= kMostOfRow * bytes_of_item(set, planes) &&
               cut(set, planes, visit);
    });
}

// Where it reaches highest, at either end.
CUdeviceptr end_of(const Copy& copy) {
    CUdeviceptr end = 0;
    for (const Rows& rows : copy.rows) {
        const auto behind_all = [&rows](const void* address, std::ptrdiff_t first, Bytes pitch,
                                        Bytes plane) {
            return device_address(address) + static_cast<CUdeviceptr>(first) +
                   (rows.count - 1) * pitch + (rows.planes - 1) * plane + rows.width;
        };
        end =
            std::max({end,
                      behind_all(copy.destination, rows.destination, rows.destination_pitch,
                                 rows.destination_plane),
                      behind_all(copy.source, rows.source, rows.source_pitch, rows.source_plane)});
    }
    return end;
}

}  // namespace

Bytes ResidentCopies::items_of_rows(const Copy& copy) {
    Bytes items = 0;
    const auto fits = [&items](const kernels::RowSet& set, const kernels::Planes& planes) {
        items += CopyRing::items_of(planes);
        return items <= kTogether.items && kernels::fits_an_item(set, planes);
    };
    return cut(copy, fits) ? items : 0;
}

bool ResidentCopies::take_rows(const Copy& copy, Bytes items, Ends ends, User& user) {
    const Nanoseconds now = SteadyClock{}.now();
    if (!takes_for_a_launch(ends, now) || !has_room(items) ||
        end_of(copy) >= CopyRing::kMostAddress)
        return false;
    const std::uint64_t first = next_;
    (void)cut(copy, [this](const kernels::RowSet& set, const kernels::Planes& planes) {
        ring_.put_rows(next_, set, planes);
        next_ += CopyRing::items_of(planes);
        return true;
    });
    took(copy, user, first, 0, false, &counts_.copies, now, 0);
    saved_ += residency_.saving(ends);
    return true;
}

}  // namespace gantry::device::cuda
