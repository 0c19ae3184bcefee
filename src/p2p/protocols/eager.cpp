// SPDX-License-Identifier: BSD-3-Clause
//
// The receiver's side of messages that come without a verdict: with their envelope, or (small, from
// a device of another node) right behind their request to send.
#include "p2p/protocols/stage.hpp"
#include "p2p/windows.hpp"

namespace gantry::p2p {
namespace {

// Of a payload that lies in memory of ours into device memory. Where another rank uses the GPU, too, a
// kernel would wait for a turn of its compute queue, and so would a contiguous copy, which the device
// makes in rows there (device/neighbours.hpp).
Task<Status> copy_in_by_device(Executor& executor, Core& core, Side side, const std::byte* payload,
                               Bytes bytes) {
    const int gpu = side.location.gpu;
    if (side.contiguous())
        return device_copy(executor, core, side.at(0), payload, bytes, gpu, device::Engine::h2d);
    return unpack_to_device(executor, core, side.piece(0, bytes), payload,
                            movers_of(core, core.takes_turns(gpu) ? plan::CopyEngine::copy_engine_2d
                                                                  : plan::CopyEngine::kernel));
}

}  // namespace

// The bytes follow their request to send, or are here already; the sender waits for nothing, unless
// the program asked to know that it was matched.
Task<Status> take_payload(Executor& executor, Core& core, Incoming& message, Side side,
                          Bytes accepted) {
    if (message.rts.synchronous != 0) {
        Status told = core.send(message.peer, wire::kFinish,
                                wire::Finish{message.rts.send_id, MPI_SUCCESS, wire::For::sender});
        GANTRY_CO_TRY(told);
    }
    Status status = co_await message.finished;
    core.consumed_eager(message.peer, message.envelope.bytes);
    if (!status.ok() || accepted == 0) co_return status;
    if (!side.on_device()) {
        copy_in(side, 0, accepted, message.payload.data());
        co_return success();
    }
    if (side.contiguous() &&
        write_by_window(core, side.location, side.at(0), {message.payload.data(), accepted}))
        co_return success();
    status = co_await copy_in_by_device(executor, core, side, message.payload.data(), accepted);
    co_return status;
}

Task<Status> receive_eager_on_device(Executor& executor, Core& core, Request& receive, Kept payload,
                                     Bytes bytes) {
    const Status truncation = receive.status;
    const Side side{receive.buffer, receive.location};
    Status status = co_await copy_in_by_device(executor, core, side, payload.data(), bytes);
    payload.let_go();
    core.finish_request(receive, status.ok() ? truncation : status);
    co_return success();
}

}  // namespace gantry::p2p
