// SPDX-License-Identifier: BSD-3-Clause
//
// Outbound: operations by message, at their origin (outbound.cpp); small puts travel together (batches.cpp).
#pragma once

#include "rma/window_part.hpp"

namespace gantry::rma {

class Outbound : public WindowPart {
  public:
    explicit Outbound(Window& its_window) : WindowPart(its_window) {}

    // True: it has left.
    Result<bool> try_message(const Access& access, std::uint64_t address);
    Task<Status> carry_out_by_message(Executor& executor, Operation& operation);
    // The target's buffer on the wire.
    Result<wire::Span> span_for(const Access& access, std::uint64_t address);
    // Whether one more message may go to that target, which has not executed all before it.
    bool has_room(const Target& target) const;
    Task<Status> until_room(Executor& executor, Target& of);
    Bytes largest_piece(const Target& of) const;
    // Small puts that wait for company.
    Status ship_batch(int of_rank);
    // Ends an operation that has left, once its answers are stored.
    void end_if_over(Operation& operation);

    // --- what the target says
    void on_answer(const wire::Answer& answer, transport::ConstSpan payload);
    void on_executed(int from, const wire::Executed& executed);

  private:
    Status send_piece(const Access& access, std::uint64_t operation, const wire::Span& span,
                      transport::ConstSpan payload);
    Bytes piece_bytes(const Access& access);
    Task<Status> store_answer(Executor& executor, Operation* operation, Bytes first,
                              std::vector<std::byte> bytes);
    bool joins_batch(const Access& access, const wire::Span& span) const;
    Status add_to_batch(int of_rank, const wire::Span& span, const std::byte* bytes);
};

}  // namespace gantry::rma
