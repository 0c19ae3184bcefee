// SPDX-License-Identifier: BSD-3-Clause
//
// Many boxes copied inside the machine's memory by one launch: packing, unpacking, wrapping.
#pragma once

#include "fields.hpp"
#include "move_kernels.hpp"
#include "pattern.hpp"

#include <vector>

namespace gantry::apps {

class Mover {
  public:
    Mover(Machine& machine, std::size_t element, std::vector<Move> moves);
    ~Mover();
    Mover(const Mover&) = delete;
    Mover& operator=(const Mover&) = delete;

    // In the order of the edge's stream.
    void run();

  private:
    Machine& machine_;
    const Kernel& kernel_;
    void* table_ = nullptr;
    MoveWork work_{};
};

// From the fields to packed memory and back, and within the fields.
Move pack_move(const Fields& fields, const Piece& piece, const void* packed);
Move unpack_move(const Fields& fields, const Piece& piece, const void* packed);
Move wrap_move(const Fields& fields, const Piece& piece);

constexpr Whole values_of(const Box& box) {
    return box.n[0] * box.n[1] * box.n[2];
}
Whole values_of(const Message& message);

}  // namespace gantry::apps
