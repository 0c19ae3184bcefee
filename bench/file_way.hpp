// SPDX-License-Identifier: BSD-3-Clause
//
// A way to write a rank's part of a file and to read it: the MPI library, or the system's own calls.
//
// Time: of the calls that write or read, from behind a barrier until the slowest rank's has returned.
// Making the file, opening, setting the view and closing are outside. Every write is into a file that was
// not there, every read of one that was written just now.
#pragma once

#include "file_part.hpp"

#include <memory>

namespace gantry::bench {

struct FileCase {
    const FilePart& part;
    std::string path;
    bool together = false;  // by collective calls
    std::size_t call = 0;   // bytes of one call, where a rank's part is one run
};

class FileWay {
  public:
    virtual ~FileWay() = default;
    virtual const char* name() const = 0;
    // Seconds of the slowest rank; `failed` is a sentence where a call did.
    virtual double write(const void* memory, std::string& failed) = 0;
    virtual double read(void* memory, std::string& failed) = 0;
};

std::unique_ptr<FileWay> library_file_way(const FileCase& what, const char* name);
// pwrite and pread of as many bytes, each rank's one run: what the file system allows.
std::unique_ptr<FileWay> system_file_way(const FileCase& what);

// Removes it on rank 0; all ranks know.
void remove_file(const std::string& path);
// Whether the whole file holds what it should in that sample; each rank looks at a part of it.
std::string mistake_in_file(const FileCase& what, std::uint64_t sample);

}  // namespace gantry::bench
