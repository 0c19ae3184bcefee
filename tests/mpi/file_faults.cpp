// SPDX-License-Identifier: BSD-3-Clause
//
// A system that fails, under real processes: io_shim.c lets one system call on the file fail, be cut short
// or meet the end, on one rank, at every call of every way that a read or write goes. Every rank that took
// part in a collective call has the error, with a sentence; nobody waits for ever, and the file has no byte
// that nobody wrote. Behind it the same call succeeds.
#include "files.hpp"
#include "gpu.hpp"
#include "refused.hpp"
#include "test.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <functional>

using namespace mpi_tests;

namespace {

// Of io_shim.c.
constexpr int kShort = -1, kEnd = -3;

struct Shim {
    void (*arm)(const char* kind, int at, int what) = nullptr;
    int (*hits)() = nullptr;
    Shim() {
        arm = reinterpret_cast<void (*)(const char*, int, int)>(dlsym(RTLD_DEFAULT, "io_shim_arm"));
        hits = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "io_shim_hits"));
        if (arm == nullptr) skip("io_shim.so is not loaded: LD_PRELOAD");
    }
    void off() const { arm("", 0, 0); }
};

int most(int mine) {
    int all = 0;
    OK(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    return all;
}

constexpr int kRun = 64, kRuns = 600, kBytes = kRun * kRuns;

unsigned char byte_at(std::size_t place) {
    return static_cast<unsigned char>(1 + place % 251);
}

// One way that reads and writes go.
struct Way {
    const char* name;
    bool together;       // a call of all ranks
    bool interleaved;    // runs of the ranks take turns in the file
    const char* phases;  // the hint: enable or disable
    Kind kind;
    bool strided;  // memory: every second run of 8 bytes
    bool shared_pointer = false, atomic = false;
};

const Way kWays[] = {
    {"alone", false, false, "disable", Kind::host, false},
    {"alone, short runs of memory", false, false, "disable", Kind::host, true},
    {"alone, short runs of the file", false, true, "disable", Kind::host, false},
    {"alone, device memory", false, false, "disable", Kind::device, false},
    {"all, each alone", true, false, "disable", Kind::host, false},
    {"two phases", true, true, "enable", Kind::host, false},
    {"two phases, device memory", true, true, "enable", Kind::device, true},
    {"shared pointer", false, false, "disable", Kind::host, false, true},
    {"atomic", false, true, "disable", Kind::host, false, false, true},
};

// By threads, and by the caller: tmpfs.
constexpr const char* kFolders[] = {"/tmp", "/dev/shm"};

class Exercise {
  public:
    Exercise(const Way& way, const std::string& path) : way_(way), path_(path) {
        MPI_Info info;
        OK(MPI_Info_create(&info));
        for (const char* key : {"romio_cb_write", "romio_cb_read"})
            OK(MPI_Info_set(info, key, way.phases));
        OK(MPI_Info_set(info, "cb_buffer_size", "16384"));
        file_ = open_file(path, kNew, MPI_COMM_WORLD, info);
        OK(MPI_Info_free(&info));
        MPI_Datatype run;
        OK(MPI_Type_contiguous(kRun, MPI_BYTE, &run));
        OK(MPI_Type_create_resized(run, 0, way.interleaved ? kRun * size() : kRun, &view_));
        OK(MPI_Type_commit(&view_));
        OK(MPI_Type_free(&run));
        const int before_me = way.interleaved ? kRun : kBytes;
        OK(MPI_File_set_view(file_, way.shared_pointer ? 0 : before_me * rank(), MPI_BYTE, view_,
                             "native", MPI_INFO_NULL));
        OK(MPI_File_set_atomicity(file_, way.atomic ? 1 : 0));
        OK(MPI_Type_vector(kBytes / 8, 8, way.strided ? 16 : 8, MPI_BYTE, &memory_));
        OK(MPI_Type_commit(&memory_));
        image_.resize(static_cast<std::size_t>(kBytes) * 2);
        buffer_ = std::make_unique<Memory>(way.kind, image_.size());
    }
    ~Exercise() {
        buffer_.reset();
        OK(MPI_Type_free(&view_));
        OK(MPI_Type_free(&memory_));
        OK(MPI_File_close(&file_));
    }
    Exercise(const Exercise&) = delete;
    Exercise& operator=(const Exercise&) = delete;

    int write() {
        for (std::size_t byte = 0; byte < kBytes; ++byte)
            image_[in_memory(byte)] = byte_at(place(rank(), byte));
        buffer_->write(image_.data(), image_.size());
        if (way_.shared_pointer) {
            // In the order of the ranks, so that each knows its place.
            int code = MPI_SUCCESS;
            for (int turn = 0; turn < size(); ++turn) {
                OK(MPI_Barrier(MPI_COMM_WORLD));
                if (turn == rank())
                    code = MPI_File_write_shared(file_, buffer_->data(), 1, memory_,
                                                 MPI_STATUS_IGNORE);
            }
            OK(MPI_Barrier(MPI_COMM_WORLD));
            OK(MPI_File_seek_shared(file_, 0, MPI_SEEK_SET));
            return code;
        }
        return way_.together
                   ? MPI_File_write_at_all(file_, 0, buffer_->data(), 1, memory_, MPI_STATUS_IGNORE)
                   : MPI_File_write_at(file_, 0, buffer_->data(), 1, memory_, MPI_STATUS_IGNORE);
    }
    int read(MPI_Status* status) {
        std::fill(image_.begin(), image_.end(), static_cast<unsigned char>(0));
        buffer_->write(image_.data(), image_.size());
        const int code =
            way_.together ? MPI_File_read_at_all(file_, 0, buffer_->data(), 1, memory_, status)
            : way_.shared_pointer
                ? MPI_File_read_at(file_, rank() * kBytes, buffer_->data(), 1, memory_, status)
                : MPI_File_read_at(file_, 0, buffer_->data(), 1, memory_, status);
        buffer_->read(image_.data(), image_.size());
        return code;
    }
    // The first so many bytes that were read.
    bool right(int bytes) const {
        for (std::size_t byte = 0; byte < static_cast<std::size_t>(bytes); ++byte)
            if (image_[in_memory(byte)] != byte_at(place(rank(), byte))) return false;
        return true;
    }
    // Bytes that are there are those that somebody wrote.
    bool file_is_right(bool whole) const {
        const std::vector<unsigned char> bytes = bytes_of(path_);
        for (std::size_t byte = 0; byte < bytes.size(); ++byte)
            if (bytes[byte] != byte_at(byte) && (whole || bytes[byte] != 0)) return false;
        return !whole || bytes.size() == static_cast<std::size_t>(kBytes * size());
    }

  private:
    std::size_t place(int of, std::size_t byte) const {
        const auto r = static_cast<std::size_t>(of), all = static_cast<std::size_t>(size());
        return way_.interleaved ? (byte / kRun * all + r) * kRun + byte % kRun : r * kBytes + byte;
    }
    std::size_t in_memory(std::size_t byte) const {
        return way_.strided ? byte / 8 * 16 + byte % 8 : byte;
    }
    const Way& way_;
    const std::string path_;
    MPI_File file_ = MPI_FILE_NULL;
    MPI_Datatype view_ = MPI_DATATYPE_NULL, memory_ = MPI_DATATYPE_NULL;
    std::vector<unsigned char> image_;
    std::unique_ptr<Memory> buffer_;
};

// The error that a call must have on this rank, or success.
void check_code(int code, bool failed_here, const Way& way, int error_class, const char* words) {
    if (failed_here || way.together)
        expect(code, error_class, {"shimmed", words}, way.name);
    else
        OK(code);
}

void fail_writes(const Shim& shim, const Way& way, const std::string& path) {
    struct Fault {
        int error, error_class;
        const char* words;
    };
    const Fault faults[] = {{ENOSPC, MPI_ERR_NO_SPACE, "ENOSPC"},
                            {EIO, MPI_ERR_IO, "EIO"},
                            {EDQUOT, MPI_ERR_QUOTA, "EDQUOT"},
                            {EROFS, MPI_ERR_READ_ONLY, "EROFS"}};
    Exercise it(way, path);
    // The last rank's calls, one after the other, until there are no more. Of many only some.
    bool came = true;
    for (int at = 1, number = 0; came; at += at < 3 ? 1 : 97, ++number) {
        const Fault& fault = faults[number % 4];
        about(std::string(way.name) + ", write " + std::to_string(at));
        if (rank() == size() - 1) shim.arm("write", at, fault.error);
        const int code = it.write();
        const bool here = shim.hits() > 0;
        shim.off();
        came = most(here ? 1 : 0) > 0;
        CHECK(came || at > 1);
        if (came) check_code(code, here, way, fault.error_class, fault.words);
        if (!came) OK(code);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(it.file_is_right(!came));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    for (const int how : {kShort, kEnd}) {
        about(std::string(way.name) + ", write cut");
        if (rank() == size() - 1) shim.arm("write", 1, how);
        const int code = it.write();
        const bool here = shim.hits() > 0;
        shim.off();
        // A short write goes on; a disk that takes nothing more is full.
        if (how == kShort || most(here ? 1 : 0) == 0)
            OK(code);
        else
            check_code(code, here, way, MPI_ERR_NO_SPACE, "ENOSPC");
        OK(it.write());
        OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(it.file_is_right(true));
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

void fail_reads(const Shim& shim, const Way& way, const std::string& path) {
    Exercise it(way, path);
    OK(it.write());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Status status;
    bool came = true;
    for (int at = 1; came; at += at < 3 ? 1 : 97) {
        about(std::string(way.name) + ", read " + std::to_string(at));
        if (rank() == size() - 1) shim.arm("read", at, EIO);
        const int code = it.read(&status);
        const bool here = shim.hits() > 0;
        shim.off();
        came = most(here ? 1 : 0) > 0;
        CHECK(came || at > 1);
        if (came) check_code(code, here, way, MPI_ERR_IO, "EIO");
        if (!came) OK(code);
    }
    for (const int how : {kShort, kEnd}) {
        about(std::string(way.name) + ", read cut");
        if (rank() == size() - 1) shim.arm("read", 1, how);
        OK(it.read(&status));
        shim.off();
        // The end of a file that somebody has cut: fewer bytes, and those are right.
        if (how == kShort) CHECK_EQ(count_of(status, MPI_BYTE), kBytes);
        CHECK(it.right(count_of(status, MPI_BYTE)));
        OK(it.read(&status));
        CHECK_EQ(count_of(status, MPI_BYTE), kBytes);
        CHECK(it.right(kBytes));
    }
    about("");
}

}  // namespace

MPI_CASE(a_write_that_the_system_refuses_is_an_error_where_it_counts, 3) {
    const Shim shim;
    for (const char* base : kFolders) {
        const Folder folder(base);
        for (const Way& way : kWays)
            fail_writes(shim, way, folder / ("shimmed " + std::string(way.name)));
    }
    about("");
}

MPI_CASE(a_read_that_the_system_refuses_is_an_error_where_it_counts, 3) {
    const Shim shim;
    for (const char* base : kFolders) {
        const Folder folder(base);
        for (const Way& way : kWays)
            fail_reads(shim, way, folder / ("shimmed " + std::string(way.name)));
    }
    about("");
}

// What is asked of the file as a whole: an error on every rank, and the next call is as if nothing had been.
MPI_CASE(a_file_that_the_system_refuses_is_an_error_on_every_rank, 3) {
    const Shim shim;
    const Folder folder;
    const std::string path = folder / "shimmed";
    const int last = size() - 1;
    const auto refuse = [&](const char* kind, int on, int error, int error_class, const char* words,
                            const std::function<int()>& call) {
        about(kind);
        if (rank() == on) shim.arm(kind, 1, error);
        const int code = call();
        if (rank() == on) CHECK_EQ(shim.hits(), 1);
        shim.off();
        expect(code, error_class, {"shimmed", words}, kind);
    };
    MPI_File file = MPI_FILE_NULL;
    const auto open = [&] {
        return MPI_File_open(MPI_COMM_WORLD, path.c_str(), kNew, MPI_INFO_NULL, &file);
    };
    refuse("open", 0, EROFS, MPI_ERR_READ_ONLY, "EROFS", open);
    refuse("open", last, EACCES, MPI_ERR_ACCESS, "EACCES", open);
    refuse("open", last, EIO, MPI_ERR_IO, "EIO", open);
    OK(open());
    refuse("cut", 0, ENOSPC, MPI_ERR_NO_SPACE, "ENOSPC",
           [&] { return MPI_File_set_size(file, 5000); });
    OK(MPI_File_set_size(file, 5000));
    refuse("allocate", 0, ENOSPC, MPI_ERR_NO_SPACE, "ENOSPC",
           [&] { return MPI_File_preallocate(file, 50000); });
    refuse("sync", last, EIO, MPI_ERR_IO, "EIO", [&] { return MPI_File_sync(file); });
    OK(MPI_File_sync(file));
    OK(MPI_File_set_atomicity(file, 1));
    const int value = 3;
    refuse("lock", last, ENOLCK, MPI_ERR_IO, "ENOLCK", [&] {
        return MPI_File_write_at_all(file, 4 * rank(), &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    });
    OK(MPI_File_write_at_all(file, 4 * rank(), &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    refuse("close", last, EIO, MPI_ERR_IO, "EIO", [&] { return MPI_File_close(&file); });
    about("");
}
