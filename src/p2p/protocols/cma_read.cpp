// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver reads the sender's host memory through the kernel (process_vm_readv): one copy, and a FIN.
//
//   sender                                   receiver
//     | --- RTS [offer: cma, address] ------> |  reads it, piece by piece
//     | <---------------------------- FIN --- |
//
// The sender has copied nothing ahead and holds its buffer until the FIN. What cannot be read, at the
// first piece or a later one, goes through slots from its beginning: the CTS says so.
#include "p2p/rendezvous_receive.hpp"
#include "transfer/peer_memory/read.hpp"

namespace gantry::p2p {

Task<Status> read_by_cma(Executor& executor, Receiving& receiving) {
    const wire::Rts& rts = receiving.message.rts;
    const bool trial = receiving.verdict.facts.reads == plan::Reads::trial;
    std::byte* const to = receiving.accepted > 0 ? receiving.side.at(0) : nullptr;
    const transfer::PeerMemory from{receiving.sender(), rts.address, receiving.accepted};
    const Bytes piece = trial ? Bytes{transfer::kDeviceSlotUnit} : plan::kReadPiece;
    Status status;
    if (trial && receiving.accepted > 0)
        status = co_await transfer::try_calls(executor, receiving.context(), from, to);
    if (status.ok())
        status = co_await transfer::read(executor, receiving.context(), from, to, piece);
    if (!status.ok()) co_return status;
    receiving.taken = receiving.accepted;
    status = receiving.messages.send(receiving.message.peer, wire::kFin,
                                     wire::Fin{rts.send_id, MPI_SUCCESS, wire::For::sender});
    co_return status;
}

}  // namespace gantry::p2p
