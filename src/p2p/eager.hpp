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
Result<EagerPayload> packed_payload_of(const Buffer& buffer);
inline Result<EagerPayload> payload_of(const Buffer& buffer) {
    if (!buffer.contiguous() && buffer.bytes() > 0) return packed_payload_of(buffer);
    return EagerPayload{{buffer.data(), buffer.bytes()}, nullptr};
}

// The receiver's side of a message whose RTS offered `eager`: the bytes follow the RTS, or are here
// already. The sender waits for nothing, unless the program asked to know that it was matched.
Task<Status> take_payload(Executor& executor, Messages& messages, Incoming& message,
                          transfer::Side side, Bytes accepted);

// What a receive, whose outcome names the sender, hears of a message of so many bytes.
[[gnu::cold, gnu::noinline]] Status truncated(const Request& receive, Bytes bytes);

}  // namespace gantry::p2p
