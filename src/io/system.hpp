// SPDX-License-Identifier: BSD-3-Clause
//
// System: what files are asked of the operating system, and nothing else in this layer asks it. Calls
// return what the system's do, or -errno. Threads of a backend make them at the same time. Tests put
// a system of their own in its place, which fails when it is told to (io/fake/faulty_system.hpp).
#pragma once

#include "base/units.hpp"

#include <sys/uio.h>

#include <cstdint>

namespace gantry::io {

enum class LockKind : std::uint8_t { none, shared, exclusive };

class System {
  public:
    virtual ~System() = default;
    virtual int open(const char* path, int flags, unsigned permissions);
    virtual int close(int file);
    virtual int remove(const char* path);
    virtual std::int64_t size(int file);
    virtual int set_size(int file, std::int64_t bytes);
    // Room for the bytes up to there; the file is at least so long afterwards.
    virtual int allocate(int file, std::int64_t bytes);
    virtual int sync(int file);
    virtual std::int64_t read(int file, const iovec* pieces, int number, std::int64_t offset);
    // The same without waiting for a device: -EAGAIN, or -EOPNOTSUPP where the file system cannot say.
    virtual std::int64_t read_now(int file, const iovec* pieces, int number, std::int64_t offset);
    virtual std::int64_t write(int file, const iovec* pieces, int number, std::int64_t offset);
    // Whether the file lies in memory alone (tmpfs): a read or write is a copy there.
    virtual bool is_in_memory(int file);
    // Of a range of bytes, against other openings of the file; -EAGAIN: one of them holds it.
    virtual int try_lock(int file, LockKind kind, std::int64_t offset, std::int64_t bytes);
};

}  // namespace gantry::io
