// SPDX-License-Identifier: BSD-3-Clause
//
// A way to make a collective operation: the MPI library, NCCL, or stores by hand.
#pragma once

#include "buffer.hpp"
#include "collective_operation.hpp"
#include "collective_options.hpp"

#include <memory>
#include <string>

namespace gantry::bench {

class CollectiveWay {
  public:
    virtual ~CollectiveWay() = default;
    virtual std::string name() const = 0;
    // Between them the caller may compute. A blocking call is all in `finish`.
    virtual void start() {}
    virtual void finish() = 0;
};

// All ranks make the same ways in the same order, for buffers that outlive them.
std::unique_ptr<CollectiveWay> library_collective(const Collective& call, Form form,
                                                  const Buffer& out, const Buffer& in);
// The operations that are messages (is_of_messages).
std::unique_ptr<CollectiveWay> library_messages(const Collective& call, const Buffer& out,
                                                const Buffer& in);
// What programs do by hand; the second of alltoall alone.
std::unique_ptr<CollectiveWay> staged_collective(const Collective& call, const Buffer& out,
                                                 const Buffer& in);
std::unique_ptr<CollectiveWay> messages_in_turn(const Collective& call, const Buffer& out,
                                                const Buffer& in);
// Null, with a reason, where NCCL has no such operation or cannot be loaded.
std::unique_ptr<CollectiveWay> nccl_collective(const Collective& call, const Buffer& out,
                                               const Buffer& in, std::string* why_not);
// The floor: each rank stores into the others' mapped buffers with one launch and flags. Null where there is none.
std::unique_ptr<CollectiveWay> stores_collective(const Collective& call, const Buffer& out,
                                                 const Buffer& in, std::string* why_not);

}  // namespace gantry::bench
