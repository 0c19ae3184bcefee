// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous: large operations with an end in device memory that nothing reaches, as large messages go.
#pragma once

#include "p2p/messenger.hpp"
#include "rma/target_memory.hpp"
#include "rma/window_part.hpp"

namespace gantry::rma {

class Rendezvous : public WindowPart {
  public:
    explicit Rendezvous(Window& its_window) : WindowPart(its_window) {}

    Task<Status> carry(Executor& executor, Operation* operation);
    Task<Status> announce_get(Executor& executor, Operation& operation);

    // --- what arrives
    void take_put(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void take_answer(int from, transport::ConstSpan header, transport::ConstSpan payload);
    void serve_rendezvous_get(int from, transport::ConstSpan header);
    void on_put_ended(int from, const wire::PutEnded& ended);

  private:
    Task<Status> announce_put(Executor& executor, Operation& operation);
    Task<Status> receive_put(Executor& executor, int from, p2p::Matched message, Region region);
    Task<Status> receive_answer(Executor& executor, Operation* operation, p2p::Matched message);
    Task<Status> send_answer(Executor& executor, int from, wire::RendezvousGet get, Region region);
    Task<Status> receive_rendezvous(Executor& executor, p2p::Matched message, p2p::Buffer into);
};

}  // namespace gantry::rma
