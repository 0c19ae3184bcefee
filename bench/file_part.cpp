// SPDX-License-Identifier: BSD-3-Clause
#include "file_part.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace gantry::bench {
namespace {

constexpr std::size_t kWord = sizeof(double);
constexpr std::size_t kPoint = 5 * kWord;  // of BT

// Of the word at that place of the file.
std::uint64_t word(MPI_Offset place, std::uint64_t sample) {
    std::uint64_t mixed = static_cast<std::uint64_t>(place) + (sample << 40) + 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    return mixed ^ (mixed >> 29);
}

// The cube whose number of points is at least that, with sides of whole multiples.
int side_of(std::size_t points, int multiple) {
    const int side = static_cast<int>(std::ceil(std::cbrt(static_cast<double>(points)) - 1e-9));
    return std::max((side + multiple - 1) / multiple, 1) * multiple;
}

}  // namespace

FilePart::FilePart(FilePattern pattern, int rank, int ranks, std::size_t bytes_a_rank,
                   std::size_t block) {
    const auto me = static_cast<std::size_t>(rank), all = static_cast<std::size_t>(ranks);
    const std::size_t bytes = std::max((bytes_a_rank + kWord - 1) / kWord * kWord, kWord);
    switch (pattern) {
        case FilePattern::contiguous:
            displacement_ = static_cast<MPI_Offset>(me * bytes);
            add(displacement_, bytes);
            file_bytes_ = all * bytes;
            break;
        case FilePattern::strided: {
            const std::size_t unit = std::max((block + kWord - 1) / kWord * kWord, kWord);
            displacement_ = static_cast<MPI_Offset>(me * unit);
            const std::size_t blocks = std::max((bytes + unit - 1) / unit, std::size_t{1});
            for (std::size_t i = 0; i < blocks; ++i)
                add(static_cast<MPI_Offset>((i * all + me) * unit), unit);
            file_bytes_ = all * blocks * unit;
            const int doubles = static_cast<int>(unit / kWord);
            MPI_Type_vector(static_cast<int>(blocks), doubles, doubles * ranks, MPI_DOUBLE,
                            &filetype_);
            MPI_Type_commit(&filetype_);
            break;
        }
        case FilePattern::subarray: cut_array(rank, ranks, bytes / kWord * all); break;
        case FilePattern::bt: cut_grid(rank, ranks, std::max(bytes * all / kPoint, all)); break;
    }
}

FilePart::~FilePart() {
    if (filetype_ != MPI_DATATYPE_NULL) MPI_Type_free(&filetype_);
}

void FilePart::add(MPI_Offset offset, std::size_t bytes) {
    bytes_ += bytes;
    if (!runs_.empty() &&
        runs_.back().offset + static_cast<MPI_Offset>(runs_.back().bytes) == offset)
        runs_.back().bytes += bytes;
    else
        runs_.push_back({offset, bytes});
}

// Rows of a box of an array, z slowest.
void FilePart::add_box(const int (&sizes)[3], const int (&low)[3], const int (&high)[3],
                       std::size_t point) {
    for (int z = low[0]; z < high[0]; ++z)
        for (int y = low[1]; y < high[1]; ++y)
            add((static_cast<MPI_Offset>(z) * sizes[1] + y) * sizes[2] *
                        static_cast<MPI_Offset>(point) +
                    low[2] * static_cast<MPI_Offset>(point),
                static_cast<std::size_t>(high[2] - low[2]) * point);
}

void FilePart::cut_array(int rank, int ranks, std::size_t doubles) {
    int parts[3] = {};
    MPI_Dims_create(ranks, 3, parts);
    // The last dimension is cut as well, and most: that is what makes runs short.
    std::reverse(parts, parts + 3);
    const int side = side_of(doubles, parts[0] * parts[1] * parts[2]);
    const int sizes[3] = {side, side, side};
    const int at[3] = {rank / (parts[1] * parts[2]), rank / parts[2] % parts[1], rank % parts[2]};
    int low[3], high[3], block[3];
    for (int i = 0; i < 3; ++i) {
        block[i] = side / parts[i];
        low[i] = at[i] * block[i];
        high[i] = low[i] + block[i];
    }
    add_box(sizes, low, high, kWord);
    file_bytes_ = static_cast<std::size_t>(side) * static_cast<std::size_t>(side) *
                  static_cast<std::size_t>(side) * kWord;
    MPI_Type_create_subarray(3, sizes, block, low, MPI_ORDER_C, MPI_DOUBLE, &filetype_);
    MPI_Type_commit(&filetype_);
}

// BT cuts the grid into q x q x q cells for q * q ranks: rank (i, j) has the cells (i + k, j + k, k).
// Where the number of ranks is no square the grid is cut in x and z alone, and rank i has (i + k, k).
void FilePart::cut_grid(int rank, int ranks, std::size_t points) {
    const int root = static_cast<int>(std::lround(std::sqrt(ranks)));
    const bool square = root * root == ranks;
    const int cells = square ? root : ranks;
    const int side = side_of(points, cells);
    const int of_cell = side / cells;
    const int sizes[3] = {side, side, side}, five = 5;
    std::vector<MPI_Datatype> types;
    MPI_Datatype point;
    MPI_Type_contiguous(five, MPI_DOUBLE, &point);
    for (int k = 0; k < cells; ++k) {
        const int x = ((square ? rank % root : rank) + k) % cells;
        const int y = square ? (rank / root + k) % cells : 0;
        const int low[3] = {k * of_cell, y * of_cell, x * of_cell};
        const int block[3] = {of_cell, square ? of_cell : side, of_cell};
        const int high[3] = {low[0] + block[0], low[1] + block[1], low[2] + block[2]};
        add_box(sizes, low, high, kPoint);
        MPI_Type_create_subarray(3, sizes, block, low, MPI_ORDER_C, point, &types.emplace_back());
    }
    file_bytes_ = static_cast<std::size_t>(side) * static_cast<std::size_t>(side) *
                  static_cast<std::size_t>(side) * kPoint;
    const std::vector<int> ones(types.size(), 1);
    const std::vector<MPI_Aint> zeros(types.size(), 0);
    MPI_Type_create_struct(cells, ones.data(), zeros.data(), types.data(), &filetype_);
    MPI_Type_commit(&filetype_);
    for (MPI_Datatype& type : types)
        MPI_Type_free(&type);
    MPI_Type_free(&point);
}

void fill_file(std::byte* memory, MPI_Offset first, std::size_t bytes, std::uint64_t sample) {
    for (std::size_t at = 0; at < bytes; at += kWord) {
        const std::uint64_t value = word(first + static_cast<MPI_Offset>(at), sample);
        std::memcpy(memory + at, &value, kWord);
    }
}

std::size_t right_bytes(const std::byte* memory, MPI_Offset first, std::size_t bytes,
                        std::uint64_t sample) {
    std::array<std::byte, kWord> wanted;
    for (std::size_t at = 0; at < bytes; at += kWord) {
        const std::uint64_t value = word(first + static_cast<MPI_Offset>(at), sample);
        if (std::memcmp(memory + at, &value, kWord) == 0) continue;
        std::memcpy(wanted.data(), &value, kWord);
        return at +
               static_cast<std::size_t>(
                   std::mismatch(wanted.begin(), wanted.end(), memory + at).first - wanted.begin());
    }
    return bytes;
}

void FilePart::fill(std::byte* memory, std::uint64_t sample) const {
    for (const FileRun& run : runs_) {
        fill_file(memory, run.offset, run.bytes, sample);
        memory += run.bytes;
    }
}

std::string FilePart::mistake(const std::byte* memory, std::uint64_t sample) const {
    for (const FileRun& run : runs_) {
        const std::size_t right = right_bytes(memory, run.offset, run.bytes, sample);
        if (right < run.bytes)
            return "byte " + std::to_string(run.offset + static_cast<MPI_Offset>(right));
        memory += run.bytes;
    }
    return "";
}

}  // namespace gantry::bench
