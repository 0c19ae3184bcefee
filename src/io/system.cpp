// SPDX-License-Identifier: BSD-3-Clause
#include "io/system.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>

namespace gantry::io {
namespace {

template <class T>
T or_error(T returned) {
    return returned < 0 ? static_cast<T>(-errno) : returned;
}

}  // namespace

int System::open(const char* path, int flags, unsigned permissions) {
    return or_error(::open(path, flags | O_CLOEXEC, permissions));
}

int System::close(int file) {
    return or_error(::close(file));
}

int System::remove(const char* path) {
    return or_error(::unlink(path));
}

std::int64_t System::size(int file) {
    struct stat facts {};
    const int failed = or_error(::fstat(file, &facts));
    return failed < 0 ? failed : facts.st_size;
}

int System::set_size(int file, std::int64_t bytes) {
    return or_error(::ftruncate(file, bytes));
}

int System::allocate(int file, std::int64_t bytes) {
    return -::posix_fallocate(file, 0, bytes);
}

int System::sync(int file) {
    return or_error(::fsync(file));
}

std::int64_t System::read(int file, const iovec* pieces, int number, std::int64_t offset) {
    return or_error(::preadv(file, pieces, number, offset));
}

std::int64_t System::read_now(int file, const iovec* pieces, int number, std::int64_t offset) {
    return or_error(::preadv2(file, pieces, number, offset, RWF_NOWAIT));
}

bool System::is_in_memory(int file) {
    struct statfs facts {};
    return ::fstatfs(file, &facts) == 0 &&
           (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
}

std::int64_t System::write(int file, const iovec* pieces, int number, std::int64_t offset) {
    return or_error(::pwritev(file, pieces, number, offset));
}

// Locks of the opening, not of the process: two handles of one process exclude each other as well.
int System::try_lock(int file, LockKind kind, std::int64_t offset, std::int64_t bytes) {
    struct flock range {};
    range.l_type = static_cast<short>(kind == LockKind::none     ? F_UNLCK
                                      : kind == LockKind::shared ? F_RDLCK
                                                                 : F_WRLCK);
    range.l_whence = SEEK_SET;
    range.l_start = offset;
    range.l_len = bytes;
    const int failed = or_error(::fcntl(file, F_OFD_SETLK, &range));
    return failed == -EACCES ? -EAGAIN : failed;
}

}  // namespace gantry::io
