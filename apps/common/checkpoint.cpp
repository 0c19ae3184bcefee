// SPDX-License-Identifier: BSD-3-Clause
#include "global_fields.hpp"
#include "mistake.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace gantry::apps {
namespace {

class File {
  public:
    File(const std::string& path, int flags) : path_(path), file_(open(path.c_str(), flags, 0666)) {
        if (file_ < 0) fail("open");
    }
    ~File() { close(file_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    void write(const void* from, std::size_t bytes, Whole at) const {
        transfer(static_cast<const char*>(from), bytes, at, &pwrite, "write");
    }
    void read(void* to, std::size_t bytes, Whole at) const {
        transfer(static_cast<char*>(to), bytes, at, &pread, "read");
    }

  private:
    template <class Bytes, class Call>
    void transfer(Bytes* memory, std::size_t bytes, Whole at, Call call, const char* what) const {
        while (bytes > 0) {
            const ssize_t done = call(file_, memory, bytes, at);
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) fail(what);
            if (done == 0)
                throw Failure("checkpoint " + path_ + " ends too early: it is not whole");
            memory += done;
            bytes -= static_cast<std::size_t>(done);
            at += done;
        }
    }
    [[noreturn]] void fail(const char* what) const {
        throw Failure(std::string("cannot ") + what + " the checkpoint " + path_ + ": " +
                      std::strerror(errno));
    }
    std::string path_;
    int file_;
};

// Calls visit(place in the field's bytes, place in the file) for each row of this rank.
template <class Visit>
void for_each_row(const Grid& grid, const Fields& fields, Whole number, Visit visit) {
    const Whole halo = fields.halo(), element = static_cast<Whole>(fields.element());
    const Whole cells = grid.global[0] * grid.global[1] * grid.global[2];
    for (Whole z = 0; z < grid.local[2]; ++z)
        for (Whole y = 0; y < grid.local[1]; ++y) {
            const Whole index =
                grid.first(0) +
                grid.global[0] * (grid.first(1) + y + grid.global[1] * (grid.first(2) + z));
            visit(static_cast<std::size_t>(fields.place(halo, y + halo, z + halo) * element),
                  static_cast<Whole>(sizeof(Checkpoint)) + (number * cells + index) * element);
        }
}

}  // namespace

void save(const std::string& path, const Checkpoint& header, const Grid& grid, const Fields& fields,
          const std::vector<int>& which) {
    const std::string unfinished = path + ".unfinished";
    if (grid.rank == 0) {
        const File file(unfinished, O_WRONLY | O_CREAT | O_TRUNC);
        file.write(&header, sizeof header, 0);
    }
    MPI_Barrier(grid.comm);
    {
        const File file(unfinished, O_WRONLY);
        const std::size_t row = static_cast<std::size_t>(grid.local[0]) * fields.element();
        std::vector<char> all(fields.bytes());
        for (std::size_t number = 0; number < which.size(); ++number) {
            fields.machine().download(all.data(), fields.field(which[number]), fields.bytes());
            for_each_row(grid, fields, static_cast<Whole>(number),
                         [&](std::size_t place, Whole at) { file.write(&all[place], row, at); });
        }
    }
    MPI_Barrier(grid.comm);
    if (grid.rank == 0 && std::rename(unfinished.c_str(), path.c_str()) != 0)
        throw Failure("cannot rename " + unfinished + " to " + path + ": " + std::strerror(errno));
    MPI_Barrier(grid.comm);
}

Checkpoint load(const std::string& path, const Checkpoint& expected, const Grid& grid,
                const Fields& fields, const std::vector<int>& which) {
    const File file(path, O_RDONLY);
    Checkpoint header{};
    file.read(&header, sizeof header, 0);
    if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 ||
        std::memcmp(header.program, expected.program, sizeof header.program) != 0)
        throw Mistake("--restart " + path + " is no checkpoint of this program");
    if (std::memcmp(header.cells, expected.cells, sizeof header.cells) != 0 ||
        header.fields != expected.fields || header.element != expected.element)
        throw Mistake("--restart " + path + " has " + std::to_string(header.cells[0]) + " x " +
                      std::to_string(header.cells[1]) + " x " + std::to_string(header.cells[2]) +
                      " cells of " + std::to_string(header.element) +
                      " bytes; give the same --cells and --precision");
    if (header.parameters != expected.parameters)
        throw Mistake("--restart " + path + " was computed with other physical parameters");
    const std::size_t row = static_cast<std::size_t>(grid.local[0]) * fields.element();
    std::vector<char> all(fields.bytes());
    for (std::size_t number = 0; number < which.size(); ++number) {
        for_each_row(grid, fields, static_cast<Whole>(number),
                     [&](std::size_t place, Whole at) { file.read(&all[place], row, at); });
        fields.machine().upload(fields.field(which[number]), all.data(), fields.bytes());
    }
    return header;
}

}  // namespace gantry::apps
