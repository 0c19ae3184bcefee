// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of messages that the network writes straight into the user's buffer: puts of the
// sender's, or a get of memory that the sender exposed with its RTS.
#include "p2p/rendezvous_receive.hpp"

#include <algorithm>

namespace gantry::p2p {

Task<Status> take_puts_directly(Executor&, Receiving& receiving) {
    transport::Transport& transport = *receiving.sender().transport;
    // A receive without room still answers its sender; its buffer may be null or on a device that
    // was never asked about.
    std::byte no_room{};
    std::byte* sink = receiving.accepted > 0 ? receiving.side.at(0) : &no_room;
    Result<transport::Region> region = transport.register_memory(
        transfer::extent_of(receiving.side.location, sink, std::max<Bytes>(receiving.accepted, 1)));
    if (!region.ok())
        co_return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", region.status().text());
    wire::Cts cts{};
    cts.sink_offset = static_cast<Bytes>(sink - static_cast<std::byte*>(region->address));
    Status status = answer(receiving, cts, transport.key(*region));
    if (status.ok()) {
        status = co_await receiving.message.finished;
        // An error of the sender's is not a refusal of ours.
        if (status.error_class() == MPI_ERR_UNSUPPORTED_OPERATION)
            status = failure(MPI_ERR_OTHER, "{}", status.text());
    }
    transport.release_memory(*region);
    if (status.ok() && receiving.side.on_device() && receiving.accepted > 0)
        status = receiving.messages.device.settle_network_writes(receiving.side.location.gpu);
    co_return status;
}

Task<Status> get_exposed(Executor& executor, Receiving& receiving) {
    Completion got(executor);
    receiving.sender().transport->get_exposed(receiving.message.peer, receiving.message.rts.send_id,
                                              receiving.side.at(0), receiving.accepted, got);
    Status status = co_await got;
    co_return status;
}

}  // namespace gantry::p2p
