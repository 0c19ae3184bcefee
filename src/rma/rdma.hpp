// SPDX-License-Identifier: BSD-3-Clause
//
// Rdma: operations that the network carries between the two memories: puts (rdma.cpp), gets (rdma_gets.cpp).
#pragma once

#include "rma/window_part.hpp"
#include "transfer/endpoint.hpp"

namespace gantry::rma {

class Rdma : public WindowPart {
  public:
    explicit Rdma(Window& its_window) : WindowPart(its_window) {}
    ~Rdma();

    // Registers this rank's part, and tells by which key others put there.
    void register_own(transport::RemoteKey* key, std::uint64_t* base);
    bool network_reaches(const Side& side, const transfer::Endpoint& peer) const;
    Task<Status> carry(Executor& executor, Operation* operation);

    // At the target of a get; false never: it is executed, or under way.
    bool serve_get_into(int from, transport::ConstSpan header, transport::ConstSpan payload);

  private:
    Result<transport::Region> register_run(const transfer::Endpoint& peer,
                                           const device::Location& location,
                                           const std::byte* address, Bytes bytes) const;
    Task<Status> put_run(Executor& executor, int of_rank, device::Location location,
                         const std::byte* source, Bytes bytes, const transport::RemoteKey* key,
                         Bytes offset);
    Task<Status> put_every_other(Executor& executor, Operation* operation, Bytes first);
    Task<Status> put(Executor& executor, Operation& operation);
    Task<Status> put_staged(Executor& executor, Operation& operation);
    Bytes keyed_offset(const Operation& operation);
    Task<Status> get(Executor& executor, Operation* operation);
    Task<Status> get_run(Executor& executor, Operation& operation);
    Task<Status> ask_for_puts(Executor& executor, Operation* operation);
    Task<Status> put_where_asked(Executor& executor, int from, wire::GetInto get, Side source,
                                 transport::RemoteKey key);

    transport::Region registered_;  // my part, with the network
    transport::Transport* registered_with_ = nullptr;
};

}  // namespace gantry::rma
