// SPDX-License-Identifier: BSD-3-Clause
#include "file_way.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace gantry::bench {
namespace {

double slowest_rank(double seconds) {
    double most = 0;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

std::string text_of(int code, const char* call) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return std::string(call) + ": " + text;
}

class LibraryFile final : public FileWay {
  public:
    LibraryFile(const FileCase& what, const char* name) : what_(what), name_(name) {}
    const char* name() const override { return name_; }

    double write(const void* memory, std::string& failed) override {
        remove_file(what_.path);
        return timed(MPI_MODE_CREATE | MPI_MODE_WRONLY, failed,
                     [&](MPI_File file, MPI_Offset at, std::size_t skip, int count) {
                         const char* from = static_cast<const char*>(memory) + skip;
                         return what_.together
                                    ? MPI_File_write_at_all(file, at, from, count, MPI_DOUBLE,
                                                            MPI_STATUS_IGNORE)
                                    : MPI_File_write_at(file, at, from, count, MPI_DOUBLE,
                                                        MPI_STATUS_IGNORE);
                     });
    }
    double read(void* memory, std::string& failed) override {
        return timed(MPI_MODE_RDONLY, failed,
                     [&](MPI_File file, MPI_Offset at, std::size_t skip, int count) {
                         char* to = static_cast<char*>(memory) + skip;
                         return what_.together ? MPI_File_read_at_all(file, at, to, count,
                                                                      MPI_DOUBLE, MPI_STATUS_IGNORE)
                                               : MPI_File_read_at(file, at, to, count, MPI_DOUBLE,
                                                                  MPI_STATUS_IGNORE);
                     });
    }

  private:
    template <class Call>
    double timed(int mode, std::string& failed, Call call) {
        MPI_File file = MPI_FILE_NULL;
        if (const int code =
                MPI_File_open(MPI_COMM_WORLD, what_.path.c_str(), mode, MPI_INFO_NULL, &file);
            code != MPI_SUCCESS) {
            failed = text_of(code, "MPI_File_open");
            return 0;
        }
        const FilePart& part = what_.part;
        const bool one_run = part.filetype() == MPI_DATATYPE_NULL;
        MPI_File_set_view(file, part.displacement(), MPI_DOUBLE,
                          one_run ? MPI_DOUBLE : part.filetype(), "native", MPI_INFO_NULL);
        const std::size_t piece = one_run && what_.call > 0 ? what_.call : part.bytes();
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (std::size_t at = 0; at < part.bytes() && failed.empty(); at += piece) {
            const std::size_t bytes = std::min(piece, part.bytes() - at);
            const int code = call(file, static_cast<MPI_Offset>(at / sizeof(double)), at,
                                  static_cast<int>(bytes / sizeof(double)));
            if (code != MPI_SUCCESS) failed = text_of(code, "a call of the file");
        }
        const double seconds = slowest_rank(MPI_Wtime() - begin);
        MPI_File_close(&file);
        return seconds;
    }

    const FileCase what_;
    const char* const name_;
};

class SystemFile final : public FileWay {
  public:
    explicit SystemFile(const FileCase& what) : what_(what) {
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        first_ = static_cast<MPI_Offset>(what.part.bytes()) * rank;
    }
    const char* name() const override { return "system"; }

    double write(const void* memory, std::string& failed) override {
        remove_file(what_.path);
        int rank = 0;
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0) close(open(what_.path.c_str(), O_CREAT | O_WRONLY, 0666));
        MPI_Barrier(MPI_COMM_WORLD);
        return timed(O_WRONLY, failed, [&](int file, std::size_t at, std::size_t bytes) {
            return pwrite(file, static_cast<const char*>(memory) + at, bytes,
                          first_ + static_cast<MPI_Offset>(at));
        });
    }
    double read(void* memory, std::string& failed) override {
        return timed(O_RDONLY, failed, [&](int file, std::size_t at, std::size_t bytes) {
            return pread(file, static_cast<char*>(memory) + at, bytes,
                         first_ + static_cast<MPI_Offset>(at));
        });
    }

  private:
    template <class Call>
    double timed(int mode, std::string& failed, Call call) {
        const int file = open(what_.path.c_str(), mode);
        const std::size_t all = what_.part.bytes();
        const std::size_t piece = what_.call > 0 ? what_.call : all;
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (std::size_t at = 0; at < all;) {
            const ssize_t moved = call(file, at, std::min(piece, all - at));
            if (moved <= 0) {
                failed = std::string("the system: ") + std::strerror(errno);
                break;
            }
            at += static_cast<std::size_t>(moved);
        }
        const double seconds = slowest_rank(MPI_Wtime() - begin);
        close(file);
        return seconds;
    }

    const FileCase what_;
    MPI_Offset first_ = 0;
};

}  // namespace

std::unique_ptr<FileWay> library_file_way(const FileCase& what, const char* name) {
    return std::make_unique<LibraryFile>(what, name);
}

std::unique_ptr<FileWay> system_file_way(const FileCase& what) {
    return std::make_unique<SystemFile>(what);
}

void remove_file(const std::string& path) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(path.c_str());
    MPI_Barrier(MPI_COMM_WORLD);
}

std::string mistake_in_file(const FileCase& what, std::uint64_t sample) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto words = what.part.file_bytes() / sizeof(double);
    const auto word = [&](int of) {
        return static_cast<MPI_Offset>(words * static_cast<std::size_t>(of) /
                                       static_cast<std::size_t>(ranks) * sizeof(double));
    };
    const MPI_Offset begin = word(rank), end = word(rank + 1);
    std::vector<std::byte> piece(1 << 20);
    std::string wrong;
    const int file = open(what.path.c_str(), O_RDONLY);
    for (MPI_Offset at = begin; at < end && wrong.empty();) {
        const auto wanted =
            static_cast<std::size_t>(std::min(end - at, static_cast<MPI_Offset>(piece.size())));
        std::size_t have = 0;
        while (have < wanted) {
            const ssize_t got =
                pread(file, piece.data() + have, wanted - have, at + static_cast<MPI_Offset>(have));
            if (got <= 0) break;
            have += static_cast<std::size_t>(got);
        }
        // What is behind the end of the file is wrong as well.
        std::fill(piece.begin() + static_cast<std::ptrdiff_t>(have), piece.end(), std::byte{});
        const std::size_t right = right_bytes(piece.data(), at, wanted, sample);
        if (right < wanted) wrong = "byte " + std::to_string(at + static_cast<MPI_Offset>(right));
        at += static_cast<MPI_Offset>(wanted);
    }
    if (file >= 0) close(file);
    return wrong;
}

}  // namespace gantry::bench
