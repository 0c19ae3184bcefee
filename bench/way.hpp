// SPDX-License-Identifier: BSD-3-Clause
//
// A way to move messages from one rank's buffers into the other's: the MPI library given the
// pointers, or what a programmer does by hand with an MPI that knows nothing of devices. All calls
// return when the data has arrived, or the buffers may be used again.
#pragma once

#include "buffer.hpp"

#include <memory>
#include <string>

namespace gantry::bench {

class Way {
  public:
    virtual ~Way() = default;
    virtual std::string name() const = 0;
    // All messages of a buffer.
    virtual void send(const Buffer& from) = 0;
    virtual void receive(const Buffer& into) = 0;
    virtual void exchange(const Buffer& from, const Buffer& into) = 0;
    // After a sample, outside of its time: what still goes on behind calls that have returned.
    virtual void settle() {}
    // One message each way at once, the library's by one call; by hand as any window.
    virtual void sendrecv(const Buffer& from, const Buffer& into) { exchange(from, into); }
    // One message, for ping-pong.
    virtual void send_one(const Buffer& from, int message) = 0;
    virtual void receive_one(const Buffer& into, int message) = 0;
};

// Both sides make the same way for the same buffers; what it allocates lives as long as it does.
std::unique_ptr<Way> library_way();
// Requests made once and started for each message.
enum class Started { persistent, partitioned };
std::unique_ptr<Way> started_way(Started kind);
std::unique_ptr<Way> staged_way(Bytes message_bytes, int messages);
std::unique_ptr<Way> pipelined_way(Bytes message_bytes, int messages, Bytes block, Rows rows);

}  // namespace gantry::bench
