// SPDX-License-Identifier: BSD-3-Clause
#include "global_fields.hpp"

#include <cstring>

namespace gantry::apps {
namespace {

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

}  // namespace

std::uint64_t hash_of(const void* bytes, std::size_t count) {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < count; ++i)
        hash = mix(hash + static_cast<const unsigned char*>(bytes)[i] + 1);
    return hash;
}

std::uint64_t checksum(const Grid& grid, const Fields& fields, const std::vector<int>& which) {
    std::uint64_t mine = 0;
    const Whole halo = fields.halo();
    std::uint64_t number = 0;
    for (const int field : which) {
        const std::vector<std::byte> all = [&fields, field] {
            std::vector<std::byte> bytes(fields.bytes());
            fields.machine().download(bytes.data(), fields.field(field), fields.bytes());
            return bytes;
        }();
        ++number;
        for (Whole z = 0; z < grid.local[2]; ++z)
            for (Whole y = 0; y < grid.local[1]; ++y)
                for (Whole x = 0; x < grid.local[0]; ++x) {
                    const Whole index =
                        grid.first(0) + x +
                        grid.global[0] * (grid.first(1) + y + grid.global[1] * (grid.first(2) + z));
                    std::uint64_t bits = 0;
                    std::memcpy(&bits,
                                all.data() + static_cast<std::size_t>(
                                                 fields.place(x + halo, y + halo, z + halo)) *
                                                 fields.element(),
                                fields.element());
                    mine += mix(mix(static_cast<std::uint64_t>(index) * 64 + number) ^ bits);
                }
    }
    std::uint64_t sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, grid.comm);
    return sum;
}

Slice slice_of(const Grid& grid, const Fields& fields, int field, int axis, Whole index) {
    const int across = axis == 0 ? 1 : 0, up = axis == 2 ? 1 : 2;
    Slice slice;
    // Who has none of it sends zeros: the sum puts the slice together.
    std::vector<double> mine(static_cast<std::size_t>(grid.global[across] * grid.global[up]), 0);
    if (index >= grid.first(axis) && index < grid.first(axis) + grid.local[axis]) {
        std::vector<std::byte> all(fields.bytes());
        fields.machine().download(all.data(), fields.field(field), fields.bytes());
        for (Whole j = 0; j < grid.local[up]; ++j)
            for (Whole i = 0; i < grid.local[across]; ++i) {
                Whole at[3];
                at[axis] = index - grid.first(axis) + fields.halo();
                at[across] = i + fields.halo();
                at[up] = j + fields.halo();
                const auto place = static_cast<std::size_t>(fields.place(at[0], at[1], at[2]));
                const auto target = static_cast<std::size_t>(
                    (grid.first(up) + j) * grid.global[across] + grid.first(across) + i);
                if (fields.element() == 8)
                    std::memcpy(&mine[target], all.data() + place * 8, 8);
                else {
                    float value;
                    std::memcpy(&value, all.data() + place * 4, 4);
                    mine[target] = static_cast<double>(value);
                }
            }
    }
    if (grid.rank == 0) slice.values.resize(mine.size());
    MPI_Reduce(mine.data(), slice.values.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_SUM,
               0, grid.comm);
    slice.width = static_cast<int>(grid.global[across]);
    slice.height = static_cast<int>(grid.global[up]);
    return slice;
}

}  // namespace gantry::apps
