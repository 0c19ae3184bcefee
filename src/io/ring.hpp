// SPDX-License-Identifier: BSD-3-Clause
//
// Ring: a queue of the kernel's own (io_uring), to which reads and writes are given and that tells of
// them in any order. Used by one thread at a time. Tests put one of their own in its place
// (io/fake/faulty_ring.hpp).
#pragma once

#include "base/status.hpp"
#include "io/steps.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace gantry::io {

class Ring {
  public:
    struct Ended {
        std::uint64_t token = 0;
        std::int64_t returned = 0;  // bytes, or -errno
    };
    virtual ~Ring() = default;
    // How many calls it takes until one has ended.
    virtual int most() const = 0;
    // The call and its memory stay until it has ended.
    virtual void ask(int file, Direction direction, const Call& call, std::uint64_t token) = 0;
    // Does not wait. How many were put in.
    virtual std::size_t take(std::span<Ended> ended) = 0;
    // Until there is something to take.
    virtual void wait() = 0;
};

// By liburing, loaded at run time; the failure says what is missing, or that the kernel refuses.
Result<std::unique_ptr<Ring>> open_ring(const char* library);

}  // namespace gantry::io
