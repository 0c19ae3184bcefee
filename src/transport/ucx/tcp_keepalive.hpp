// SPDX-License-Identifier: BSD-3-Clause
//
// TcpKeepalive: whether a rail to a peer still carries packets, as the kernels of both machines know. A TCP
// connection of its own on that rail carries a byte from time to time, which the peer's kernel
// acknowledges even while its program computes. So a silent TCP keepalive means a broken way, and never a
// busy peer. It carries nothing else: nobody reads what comes by it, except to throw it away.
//
//   opener                                    listener's kernel
//     | == Hello | byte | byte | ... =========> |
//     | <======== acknowledgements of TCP ===== |
#pragma once

#include "transport/ucx/bulk.hpp"
#include "transport/ucx/stream.hpp"

#include <optional>

namespace gantry::transport::ucx {

class TcpKeepalive {
  public:
    TcpKeepalive() = default;
    // Begins to connect. `unanswered`: when the kernel itself gives up.
    static Result<TcpKeepalive> open(const sockaddr_in& address, const Hello& hello,
                                     Nanoseconds unanswered, Nanoseconds now);
    bool is_open() const { return socket_.open(); }
    void close() { socket_ = Socket(); }

    // Sends a byte, unless one is on its way.
    void send_keepalive(Nanoseconds now);
    // Asks the kernel what was acknowledged; false: the kernel gave the way up. A connection that the
    // peer closed is closed here, too, and says nothing about the rail.
    bool look(Nanoseconds now);
    // How long the oldest byte on its way has waited by now; 0: there is none.
    Nanoseconds silent(Nanoseconds now) const { return waits_since_ ? now - *waits_since_ : 0; }
    // When a byte was last seen to have arrived, or the connection to stand.
    std::optional<Nanoseconds> answered() const { return answered_; }
    Nanoseconds sent() const { return sent_; }

  private:
    bool send(const void* bytes, Bytes count);
    Socket socket_;
    Hello hello_{};
    bool greeted_ = false;
    Nanoseconds sent_ = 0;
    std::optional<Nanoseconds> waits_since_, answered_;
};

}  // namespace gantry::transport::ucx
