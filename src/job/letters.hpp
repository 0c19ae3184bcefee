// SPDX-License-Identifier: BSD-3-Clause
//
// Letters: texts of any length over a stream socket, in order, without waiting: what two processes tell
// each other before they can exchange messages. A letter is its length, eight bytes, and its bytes.
#pragma once

#include "base/status.hpp"
#include "job/tcp.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace gantry::job {

class Letters {
  public:
    // The socket is closed at the end.
    explicit Letters(Socket socket);
    // Of a socket that stays the caller's.
    static Letters borrowed(int descriptor);
    Letters(Letters&&) noexcept = default;
    Letters& operator=(Letters&&) noexcept = default;

    // Taken, whether or not it can leave now.
    void send(std::string_view text);
    // Lets leave what can, and returns the next letter if all of it is there. An error: the other side
    // is gone.
    Result<std::optional<std::string>> poll();
    // Lets leave what can.
    Status push();
    bool all_sent() const { return outgoing_.empty(); }

  private:
    Letters() = default;
    int descriptor() const { return socket_.is_open() ? socket_.descriptor() : borrowed_; }
    Status pull();

    Socket socket_;
    int borrowed_ = -1;
    std::string outgoing_, incoming_;
};

}  // namespace gantry::job
