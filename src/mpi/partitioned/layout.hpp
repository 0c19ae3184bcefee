// SPDX-License-Identifier: BSD-3-Clause
//
// How the partitions of a partitioned communication travel (MPI 5.0 chapter 4). The two sides may divide
// the same bytes into other partitions, of other datatypes:
//
//   sender's partitions    |  0  |  1  |  2  |  3  |  4  |  5  |  6  |
//   units                  |     0     |     1     |     2     |  3  |     begin and end with a partition of
//                                                                          the sender and with an element of
//                                                                          the receiver
//   groups                 |           0           |        1        |     of units: one message each, unless
//                                                                          they are too small for one
//   receiver's partitions  |       0       |       1       |    2    |
//
// A plain function of what both sides say, so that it can be tried without messages.
#pragma once

#include "base/units.hpp"

#include <algorithm>
#include <cstdint>

namespace gantry::mpi {

struct PartitionLayout {
    Bytes bytes = 0;       // of all
    Bytes unit_bytes = 0;  // of each unit but the last; none is empty unless there is only one
    std::uint32_t partitions_per_unit = 1;  // of the sender
    std::uint32_t units = 1;
    std::uint32_t units_per_group = 1;
    std::uint32_t groups = 1;

    Bytes unit_begin(std::uint32_t unit) const { return unit * unit_bytes; }
    Bytes unit_end(std::uint32_t unit) const {
        return unit + 1 >= units ? bytes : (unit + 1) * unit_bytes;
    }
    std::uint32_t first_unit(std::uint32_t group) const { return group * units_per_group; }
    std::uint32_t end_unit(std::uint32_t group) const {
        return group + 1 >= groups ? units : (group + 1) * units_per_group;
    }
    std::uint32_t units_in(std::uint32_t group) const {
        return end_unit(group) - first_unit(group);
    }
    // Of the sender's, which has so many in all.
    std::uint32_t partitions_of(std::uint32_t unit, std::uint32_t all) const {
        const std::uint32_t first = unit * partitions_per_unit;
        return std::min(all - first, partitions_per_unit);
    }
    std::uint32_t group_of(std::uint32_t unit) const { return unit / units_per_group; }
    std::uint32_t unit_of_partition(std::uint32_t partition) const {
        return partition / partitions_per_unit;
    }
    // The unit that holds this byte; the last one for what lies behind the end.
    std::uint32_t unit_at(Bytes byte) const {
        const Bytes unit = unit_bytes > 0 ? byte / unit_bytes : 0;
        return unit < units ? static_cast<std::uint32_t>(unit) : units - 1;
    }
};

// Of `partitions` of the sender of so many bytes each, received as elements of `element` bytes. A message
// is to have `message` bytes at least.
PartitionLayout lay_out(std::uint32_t partitions, Bytes partition_bytes, Bytes element,
                        Bytes message);

}  // namespace gantry::mpi
