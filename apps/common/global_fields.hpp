// SPDX-License-Identifier: BSD-3-Clause
//
// Fields as one whole, however they are shared out: their checksum, a file of them, a slice.
#pragma once

#include "fields.hpp"
#include "grid.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gantry::apps {

// The same for the same bits, on any number of ranks; on every rank.
std::uint64_t checksum(const Grid& grid, const Fields& fields, const std::vector<int>& which);

// A file has a header and the global arrays one after another, x fastest; every rank writes its own rows
// with pwrite, so a program may go on with other ranks. It appears under its name when it is whole.
struct Checkpoint {
    char magic[8];    // "GANTRY" and the format's number
    char program[8];  // "lbm", "awp"
    std::int64_t cells[3];
    std::int64_t fields, element, step;
    std::uint64_t parameters;  // a hash of what must not differ
};
void save(const std::string& path, const Checkpoint& header, const Grid& grid, const Fields& fields,
          const std::vector<int>& which);
// Throws a Mistake when the file is not of this program, grid and parameters.
Checkpoint load(const std::string& path, const Checkpoint& expected, const Grid& grid,
                const Fields& fields, const std::vector<int>& which);

// Hash of bytes, for Checkpoint::parameters.
std::uint64_t hash_of(const void* bytes, std::size_t count);

// The global plane across `axis` at `index`, on rank 0 (elsewhere empty): rows of the slower axis.
struct Slice {
    int width = 0, height = 0;
    std::vector<double> values;
};
Slice slice_of(const Grid& grid, const Fields& fields, int field, int axis, Whole index);

// All of a field in host memory, halo included.
template <class Value>
std::vector<Value> download(const Fields& fields, int field) {
    std::vector<Value> all(static_cast<std::size_t>(fields.cells()));
    fields.machine().download(all.data(), fields.field(field), fields.bytes());
    return all;
}

}  // namespace gantry::apps
