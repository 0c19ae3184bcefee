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
#include "base/yield.hpp"
#include "p2p/rendezvous_receive.hpp"
#include "plan/cma_candidate.hpp"

#include <algorithm>

namespace gantry::p2p {
namespace {

constexpr int kCallsTried = 4;

struct Read {
    transport::Transport& transport;
    int peer;
    std::uint64_t address;
    std::byte* sink;
    Bytes bytes;
};

Task<Status> read_piece(Executor& executor, Read read) {
    Completion done(executor);
    read.transport.read_memory(read.peer, read.address, read.sink, read.bytes, done);
    Status status = co_await done;
    co_return status;
}

}  // namespace

Task<Status> read_by_cma(Executor& executor, Receiving& receiving) {
    const wire::Rts& rts = receiving.message.rts;
    transfer::HostReads& measured = receiving.context().host_reads;
    const bool trial = receiving.verdict.facts.reads == plan::Reads::trial;
    const Bytes piece = trial ? transfer::kDeviceSlotUnit : plan::kReadPiece;
    Read read{*receiving.sender().transport, receiving.message.peer, rts.address,
              receiving.accepted > 0 ? receiving.side.at(0) : nullptr, 0};
    Status status;
    for (int call = 0; trial && call < kCallsTried && status.ok(); ++call) {
        read.bytes = std::min<Bytes>(receiving.accepted, 8);
        const Nanoseconds began = executor.now();
        status = co_await read_piece(executor, read);
        measured.tried_call(executor.now() - began);
    }
    while (status.ok() && receiving.taken < receiving.accepted) {
        if (receiving.taken > 0) co_await Yield(executor);
        read.address = rts.address + receiving.taken;
        read.sink = receiving.side.at(receiving.taken);
        read.bytes = std::min(piece, receiving.accepted - receiving.taken);
        const Nanoseconds began = executor.now();
        status = co_await read_piece(executor, read);
        if (!status.ok()) break;
        if (read.bytes >= transfer::HostReads::kSample)
            measured.read(receiving.sender(), read.bytes, executor.now() - began);
        receiving.taken += read.bytes;
    }
    if (!status.ok()) {
        receiving.taken = 0;
        co_return status;
    }
    status = receiving.messages.send(receiving.message.peer, wire::kFin,
                                     wire::Fin{rts.send_id, MPI_SUCCESS, wire::For::sender});
    co_return status;
}

}  // namespace gantry::p2p
