// SPDX-License-Identifier: BSD-3-Clause
//
// Inbound: messages of other ranks, at the target.
#pragma once

#include "rma/target_memory.hpp"
#include "rma/window_part.hpp"

namespace gantry::rma {

class Inbound : public WindowPart {
  public:
    explicit Inbound(Window& its_window) : WindowPart(its_window) {}

    void arrive(int from, wire::Kind kind, transport::ConstSpan header,
                transport::ConstSpan payload);
    // The memory that a message names.
    Result<Region> region_of(int from, const wire::Span& span);
    void answer(int from, std::uint64_t operation, const wire::Span& span, const Status& status,
                transport::ConstSpan bytes, Bytes in_place = 0);
    // One more message of that rank is executed.
    void served(int from, const Status& status, Bytes bytes);
    // Messages of all ranks that are executed.
    std::uint64_t served_in_all() const { return served_in_all_; }

  private:
    bool serve_now(int from, wire::Kind kind, transport::ConstSpan header,
                   transport::ConstSpan payload);
    Task<Status> serve_all(Executor& executor, int from);
    Task<Status> serve(Executor& executor, int from, const Target::Arrived& message);
    Task<Status> change_here(Executor& executor, Region region, Change change);
    void report(int from);
    bool serve_puts(int from, transport::ConstSpan payload);
    Task<Status> serve_puts_slowly(Executor& executor, int from, transport::ConstSpan payload);

    std::uint64_t served_in_all_ = 0;
};

}  // namespace gantry::rma
