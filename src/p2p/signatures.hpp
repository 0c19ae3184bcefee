// SPDX-License-Identifier: BSD-3-Clause
//
// Signatures: what the layer that knows datatypes says to messages under GANTRY_CHECK=1. Then every
// message of the program carries the type signature of its data behind its envelope, and where it
// meets its receive the two are compared:
//
//   sender                                               receiver
//     | --- signed [envelope of any kind, signature] ---> |  a receive that it does not fit ends with
//                                                            an error; its data arrives all the same
//
// Nothing of this exists while nobody checks: envelopes are plain then.
#pragma once

#include "base/status.hpp"
#include "layout/signature.hpp"
#include "transfer/buffer.hpp"

#include <optional>

namespace gantry::p2p {

class Signatures {
  public:
    virtual ~Signatures() = default;
    // Nothing: there is no data, or the buffer is none of the program's.
    virtual std::optional<layout::Signature> of(const transfer::Buffer& buffer) const = 0;
    // A message of that signature and of so many bytes, from that rank of the communicator, has met a
    // receive into that buffer.
    virtual Status compare(const layout::Signature& sent, Bytes bytes, int source,
                           const transfer::Buffer& receive) const = 0;
};

}  // namespace gantry::p2p
