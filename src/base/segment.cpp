// SPDX-License-Identifier: BSD-3-Clause
#include "base/segment.hpp"

#include "base/process_state.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gantry {
namespace {

constexpr const char* kSharedFolder = "/dev/shm";

std::string path_of(const SegmentName& name) {
    return fmt::format("/proc/{}/fd/{}", name.process, name.descriptor);
}

// Bytes the system can still give, or the largest number when it does not say. A memfd has no size
// limit of its own: without this check a reservation that does not fit would wake the out-of-memory
// killer instead of failing.
Bytes available_memory() {
    std::FILE* file = std::fopen("/proc/meminfo", "re");
    if (file == nullptr) return UINT64_MAX;
    Bytes available = UINT64_MAX;
    char line[128];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        unsigned long long kibibytes = 0;
        if (std::sscanf(line, "MemAvailable: %llu kB", &kibibytes) == 1)
            available = kibibytes * kKiB;
    }
    std::fclose(file);
    return available;
}

int open_backing(const char* what, Backing backing) {
    if (backing == Backing::memory_file) {
        const int descriptor = memfd_create(what, MFD_CLOEXEC);
        if (descriptor >= 0 || errno == EMFILE || errno == ENFILE) return descriptor;
    }
    return ::open(kSharedFolder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

Status system_failure(int error_class, const char* attempt, const char* what, Bytes bytes,
                      const char* advice) {
    return failure(error_class, "{} {} of {} bytes: {}. {}", attempt, what, bytes,
                   std::strerror(errno), advice);
}

}  // namespace

Bytes page_bytes() {
    return static_cast<Bytes>(sysconf(_SC_PAGESIZE));
}

std::uint64_t own_start_time() {
    return process_start_time(getpid());
}

bool maker_is_alive(const SegmentName& name, std::uint64_t start_time) {
    struct stat about {};
    if (stat(path_of(name).c_str(), &about) == 0 && about.st_ino == name.inode) return true;
    // The descriptor is gone: the process ended, or something in it closed all descriptors.
    return process_start_time(name.process) == start_time && !process_has_ended(name.process);
}

// --- SegmentMapping ------------------------------------------------------------------------------

SegmentMapping::SegmentMapping(void* address, Bytes bytes)
    : address_(address), bytes_(bytes), owner_process_(getpid()) {}

SegmentMapping::SegmentMapping(SegmentMapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(other.bytes_),
      owner_process_(other.owner_process_) {}

SegmentMapping& SegmentMapping::operator=(SegmentMapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(owner_process_, other.owner_process_);
    return *this;
}

SegmentMapping::~SegmentMapping() {
    if (address_ != nullptr && getpid() == owner_process_) munmap(address_, bytes_);
}

// --- Segment -------------------------------------------------------------------------------------

Segment::Segment(const char* what, int descriptor, Bytes bytes, std::uint64_t inode)
    : what_(what),
      descriptor_(descriptor),
      owner_process_(getpid()),
      bytes_(bytes),
      inode_(inode) {}

Segment::Segment(Segment&& other) noexcept
    : what_(other.what_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      owner_process_(other.owner_process_),
      bytes_(other.bytes_),
      inode_(other.inode_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
    std::swap(what_, other.what_);
    std::swap(descriptor_, other.descriptor_);
    std::swap(owner_process_, other.owner_process_);
    std::swap(bytes_, other.bytes_);
    std::swap(inode_, other.inode_);
    return *this;
}

Segment::~Segment() {
    if (descriptor_ >= 0 && getpid() == owner_process_) close(descriptor_);
}

Result<Segment> Segment::create(const char* what, Bytes bytes, Backing backing) {
    const int descriptor = open_backing(what, backing);
    if (descriptor < 0)
        return system_failure(MPI_ERR_NO_MEM, "shm: making", what, bytes,
                              "Neither a memfd nor a file in /dev/shm can be made; see `ulimit -n` "
                              "and the mount of /dev/shm");
    struct stat about {};
    fstat(descriptor, &about);
    Segment segment(what, descriptor, bytes, about.st_ino);
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
        return system_failure(
            MPI_ERR_NO_MEM, "shm: sizing", what, bytes,
            "Smaller GANTRY_HOST_POOL, GANTRY_DEVICE_POOL or GANTRY_RING need less");
    return segment;
}

Result<Segment> Segment::open(const char* what, const SegmentName& name) {
    const std::string path = path_of(name);
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        const int why = errno;
        const bool ended = main_thread_has_ended(name.process);
        return failure(ended ? MPI_ERR_PROC_ABORTED : MPI_ERR_OTHER,
                       "shm: opening {} at {}: {}. All ranks of a node must run as one user, in "
                       "one process namespace "
                       "(container), and must still be running",
                       what, path, std::strerror(why));
    }
    struct stat about {};
    fstat(descriptor, &about);
    Segment segment(what, descriptor, static_cast<Bytes>(about.st_size), about.st_ino);
    if (about.st_ino != name.inode)
        return failure(MPI_ERR_OTHER,
                       "shm: {} is not {} of process {}: that process has ended, or it is in "
                       "another process namespace "
                       "(container)",
                       path, what, name.process);
    return segment;
}

SegmentName Segment::name() const {
    return {getpid(), descriptor_, inode_};
}

Status Segment::reserve(Bytes offset, Bytes bytes) const {
    if (bytes > available_memory()) {
        errno = ENOMEM;
        return system_failure(MPI_ERR_NO_MEM, "shm: reserving a part", what_, bytes,
                              "The node's memory is full: run fewer ranks, or lower "
                              "GANTRY_HOST_POOL, GANTRY_DEVICE_POOL or "
                              "GANTRY_RING");
    }
    int error = 0;
    do
        error = posix_fallocate(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    while (error == EINTR);
    if (error == 0) return success();
    errno = error;
    return system_failure(MPI_ERR_NO_MEM, "shm: reserving a part", what_, bytes,
                          "The node's shared memory is full: run fewer ranks, enlarge /dev/shm or "
                          "the container's memory, or "
                          "lower GANTRY_HOST_POOL, GANTRY_DEVICE_POOL or GANTRY_RING");
}

Result<SegmentMapping> Segment::map(Bytes offset, Bytes bytes, Bytes alignment) const {
    constexpr const char* kHelps = "See `ulimit -v` and vm.max_map_count";
    void* address = nullptr;
    if (alignment > page_bytes()) {
        // Addresses for more than that, of which those around the right ones are given back.
        const Bytes wider = round_up(bytes, page_bytes()) + alignment;
        void* const all =
            mmap(nullptr, wider, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED)
            return system_failure(MPI_ERR_NO_MEM, "shm: aligned addresses for", what_, wider,
                                  kHelps);
        auto* const begin = static_cast<std::byte*>(all);
        const Bytes before = round_up(reinterpret_cast<std::uintptr_t>(all), alignment) -
                             reinterpret_cast<std::uintptr_t>(all);
        if (before > 0) munmap(begin, before);
        const Bytes behind = before + round_up(bytes, page_bytes());
        munmap(begin + behind, wider - behind);
        address = begin + before;
    }
    void* const mapped = mmap(address, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED | (address != nullptr ? MAP_FIXED : 0), descriptor_,
                              static_cast<off_t>(offset));
    if (mapped == MAP_FAILED)
        return system_failure(MPI_ERR_NO_MEM, "shm: mapping", what_, bytes, kHelps);
    return SegmentMapping(mapped, bytes);
}

Result<SegmentMapping> Segment::map_twice(Bytes offset, Bytes bytes) const {
    void* address =
        mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED)
        return system_failure(MPI_ERR_NO_MEM, "shm: mapping", what_, 2 * bytes,
                              "See `ulimit -v` and vm.max_map_count");
    SegmentMapping both(address, 2 * bytes);
    for (Bytes half : {Bytes{0}, bytes})
        if (mmap(both.address() + half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 descriptor_, static_cast<off_t>(offset)) == MAP_FAILED)
            return system_failure(MPI_ERR_NO_MEM, "shm: mapping", what_, bytes,
                                  "See `ulimit -v` and vm.max_map_count");
    return both;
}

}  // namespace gantry
