// SPDX-License-Identifier: BSD-3-Clause
//
// Both ends in this process: one local copy, or two where the ends have no copy between them.
#include "p2p/rendezvous_receive.hpp"
#include "transfer/local_move.hpp"

namespace gantry::p2p {
Task<Status> copy_locally(Executor& executor, Receiving& receiving) {
    OutgoingTable& table = receiving.messages.outgoing;
    const std::uint64_t id = receiving.message.rts.send_id;
    Outgoing* outgoing = table.find(id);
    if (outgoing == nullptr)
        co_return failure(MPI_ERR_INTERN, "a message to this rank itself lost its sender");
    const Side source{outgoing->buffer, outgoing->location};
    Status status = co_await transfer::move_locally(
        executor, receiving.context(), source, outgoing->bytes, receiving.side, receiving.accepted);
    outgoing = table.find(id);
    if (status.ok()) status = answer(receiving, wire::Cts{});
    if (outgoing != nullptr && !outgoing->finished.done()) outgoing->finished.complete(status);
    co_return status;
}

}  // namespace gantry::p2p
