// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/partitioned/layout.hpp"

#include <algorithm>
#include <numeric>

namespace gantry::mpi {
namespace {

// Each is a receive that is posted.
constexpr Bytes kMostGroups = 4096;

}  // namespace

PartitionLayout lay_out(std::uint32_t partitions, Bytes partition_bytes, Bytes element,
                        Bytes message) {
    PartitionLayout layout;
    layout.bytes = partitions * partition_bytes;
    layout.unit_bytes = layout.bytes;
    layout.partitions_per_unit = std::max(partitions, 1u);
    if (layout.bytes == 0) return layout;
    const Bytes in_unit = element > 0 ? element / std::gcd(element, partition_bytes) : 1;
    if (in_unit >= partitions) return layout;  // only the ends of all fit both sides
    layout.partitions_per_unit = static_cast<std::uint32_t>(in_unit);
    layout.unit_bytes = in_unit * partition_bytes;
    layout.units = static_cast<std::uint32_t>(divide_up(partitions, in_unit));
    const Bytes wanted = divide_up(std::max<Bytes>(message, 1), layout.unit_bytes);
    const Bytes least = divide_up(layout.units, kMostGroups);
    const Bytes in_group = std::clamp<Bytes>(wanted, least, layout.units);
    layout.units_per_group = static_cast<std::uint32_t>(in_group);
    layout.groups = static_cast<std::uint32_t>(divide_up(layout.units, in_group));
    return layout;
}

}  // namespace gantry::mpi
