// SPDX-License-Identifier: BSD-3-Clause
//
// What the parts of the receiver's side share (receive.cpp decides, receive_ipc.cpp copies between
// the processes' device memory): the state of one incoming rendezvous.
#pragma once

#include "p2p/protocols/stage.hpp"

#include <vector>

namespace gantry::p2p {

struct Receiving {
    Core& core;
    Incoming& message;
    Side side;
    Bytes accepted = 0;
    Bytes taken = 0;  // of them: has come in pieces
    plan::Question question{};
    plan::Facts facts{};
    plan::Choice choice{};
    bool shared = false;
    bool answered = false;          // a CTS has gone out
    bool claimed = false;           // we copy, although the sender was told to
    std::uint64_t direct_next = 0;  // advice for the sender, see wire::ClearToSend
    bool wants_descriptor = false;  // of the source's allocation, likewise
};

inline const plan::Plan& plan_of(const Receiving& receiving) {
    return receiving.choice.plan;
}

// Of a GPU that takes turns.
plan::GpuUser last_user(Core& core, const wire::RequestToSend& rts, int gpu);
// The GPU whose context and stream copy: our own buffer's, else the peer's if we see it, else any.
int copying_gpu(const Receiving& receiving, const device::IpcHandle& handle);
// Sends the verdict.
Status answer(Receiving& receiving, wire::ClearToSend cts, const transport::RemoteKey& key = {},
              const std::vector<std::uint32_t>& grants = {});
// So that the next of its kind can go the short way (take_flagged.cpp).
void remember_taken(const Receiving& receiving);
Status return_slot(Receiving& receiving, const wire::Chunk& chunk);

// We copy out of the sender's device memory. MPI_ERR_UNSUPPORTED_OPERATION: it cannot be mapped
// here.
Task<Status> get_by_ipc(Executor& executor, Receiving& receiving);
// The sender copies into our device memory, unless it does not come and we can: then the plan says
// so. MPI_ERR_UNSUPPORTED_OPERATION: we cannot export it, or it cannot map it; MPI_ERR_PENDING: it
// closed its mapping meanwhile.
Task<Status> let_sender_put(Executor& executor, Receiving& receiving);

}  // namespace gantry::p2p
