// SPDX-License-Identifier: BSD-3-Clause
//
// RowLaunch: rows of several strided copies, each with ends of its own, that one kernel moves. The GPU
// reaches all ends: its own memory, and memory of peers that is mapped for it.
//
// RowMoves: copies between buffers, in as few such launches as can be.
#pragma once

#include "base/task.hpp"
#include "transfer/buffer.hpp"

#include <span>
#include <vector>

namespace gantry::transfer {

class Context;

class RowLaunch {
  public:
    bool empty() const { return parts_.empty(); }
    // False: it is full, and nothing was added. An empty one takes any rows.
    bool add(void* destination, const void* source, std::span<const device::Rows> rows);
    // One launch; it is empty then. MPI_ERR_UNSUPPORTED_OPERATION: nothing has happened, since no kernel
    // reaches all of it.
    Task<Status> run(Executor& executor, Context& context, int gpu,
                     device::Notice notice = device::Notice::flag);

  private:
    struct Part {
        void* destination;
        const void* source;
        std::size_t sets = 0;
        Bytes bytes = 0;
    };
    void flatten();

    std::vector<Part> parts_;
    std::vector<device::Rows> rows_;  // of all parts, in their order
    std::size_t flat_sets_ = 0;       // without planes
    Bytes bytes_ = 0;
};

class RowMoves {
  public:
    // Whether add() takes them: equal bytes, and one is contiguous or both have rows alike.
    static bool are_alike(const Buffer& source, const Buffer& sink);
    // All bytes of the source. Null addresses (MPI_BOTTOM) are for contiguous buffers alone.
    void add(const Buffer& source, const Buffer& sink) { moves_.push_back({source, sink}); }
    bool empty() const { return moves_.empty(); }
    // MPI_ERR_UNSUPPORTED_OPERATION: no kernel reaches all of it; parts may have been moved.
    Task<Status> run(Executor& executor, Context& context, int gpu);

  private:
    struct Move {
        Buffer source, sink;
    };
    class Walk;
    std::vector<Move> moves_;
};

}  // namespace gantry::transfer
