// SPDX-License-Identifier: BSD-3-Clause
//
// What other parts of point-to-point need of eager messages (eager.cpp).
#pragma once

#include "p2p/messages.hpp"

namespace gantry::p2p {

// Payload of an eager message: the buffer itself, or packed.
struct EagerPayload {
    transport::ConstSpan bytes;
    std::unique_ptr<std::byte[]> packed;
};
Result<EagerPayload> payload_of(const Buffer& buffer);

// The receiver's side of a message whose RTS offered `eager`: the bytes follow the RTS, or are here
// already. The sender waits for nothing, unless the program asked to know that it was matched.
Task<Status> take_payload(Executor& executor, Messages& messages, Incoming& message,
                          transfer::Side side, Bytes accepted);

// A message of so many bytes got a buffer of `room`.
Status truncated(Bytes bytes, Bytes room);

}  // namespace gantry::p2p
