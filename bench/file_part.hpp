// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes of a file each rank writes and reads, and what they are. All ranks' parts together are the
// file, without a gap and without meeting:
//
//   contiguous   a part each, in the order of the ranks (IOR's default)
//   strided      blocks in turn (IOR's interleaved one)
//   subarray     a 3D array of doubles, cut into blocks in all three dimensions
//   bt           what the NAS benchmark BT-IO writes: five doubles a point of a 3D grid, of which each
//                rank has cells on a diagonal
//
// A byte of the file depends on its place and on the sample, so old, other ranks' and shifted bytes are
// noticed. Only MPI and the standard library: bench/host_files compiles it against other libraries.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gantry::bench {

enum class FilePattern { contiguous, strided, subarray, bt };
inline constexpr FilePattern kFilePatterns[] = {FilePattern::contiguous, FilePattern::strided,
                                                FilePattern::subarray, FilePattern::bt};
inline const char* name(FilePattern pattern) {
    switch (pattern) {
        case FilePattern::contiguous: return "contiguous";
        case FilePattern::strided: return "strided";
        case FilePattern::subarray: return "subarray";
        case FilePattern::bt: return "bt";
    }
    return "?";
}

struct FileRun {
    MPI_Offset offset = 0;
    std::size_t bytes = 0;
};

// One rank's part. Multiples of 8 bytes all over.
class FilePart {
  public:
    // About so many bytes a rank: whole blocks, points and cells. `block`: of strided.
    FilePart(FilePattern pattern, int rank, int ranks, std::size_t bytes_a_rank, std::size_t block);
    ~FilePart();
    FilePart(const FilePart&) = delete;
    FilePart& operator=(const FilePart&) = delete;

    std::size_t bytes() const { return bytes_; }
    std::size_t file_bytes() const { return file_bytes_; }
    // Where its view begins.
    MPI_Offset displacement() const { return displacement_; }
    // Of doubles; MPI_DATATYPE_NULL where the part is one run.
    MPI_Datatype filetype() const { return filetype_; }

    // What its bytes are in that sample, in the order of the file.
    void fill(std::byte* memory, std::uint64_t sample) const;
    // Empty: memory holds that; else which byte of the file is the first that differs.
    std::string mistake(const std::byte* memory, std::uint64_t sample) const;

  private:
    void add(MPI_Offset offset, std::size_t bytes);
    void add_box(const int (&sizes)[3], const int (&low)[3], const int (&high)[3],
                 std::size_t point);
    void cut_array(int rank, int ranks, std::size_t doubles);
    void cut_grid(int rank, int ranks, std::size_t points);

    std::vector<FileRun> runs_;
    std::size_t bytes_ = 0, file_bytes_ = 0;
    MPI_Offset displacement_ = 0;
    MPI_Datatype filetype_ = MPI_DATATYPE_NULL;
};

// Bytes of any file [first, first + bytes): places and number are multiples of 8.
void fill_file(std::byte* memory, MPI_Offset first, std::size_t bytes, std::uint64_t sample);
// The number of bytes in front that are right.
std::size_t right_bytes(const std::byte* memory, MPI_Offset first, std::size_t bytes,
                        std::uint64_t sample);

}  // namespace gantry::bench
