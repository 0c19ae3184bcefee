// SPDX-License-Identifier: BSD-3-Clause
//
// The two TCP verbs that starting a job needs: reach "host:port" within a time, and listen there.
// Every failure says which address, what the system said and how long it was tried.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <string>
#include <string_view>

namespace gantry::job {

// A socket that is closed at the end.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(other.release()) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~Socket();
    int descriptor() const { return descriptor_; }
    bool is_open() const { return descriptor_ >= 0; }
    int release() { return std::exchange(descriptor_, -1); }

  private:
    int descriptor_ = -1;
};

enum class Retry {
    no,                // a refusal is final
    until_it_listens,  // the other side may not have started yet
};

Result<Socket> connect_to(std::string_view host_and_port, Nanoseconds patience, Retry retry);
// Errors show on the socket when the other host has not answered for so long, in steps of 6 s.
void notice_when_its_host_is_gone(int socket, Nanoseconds silence);
// On that host's address, or on every address of this machine when the name leads elsewhere (a
// container's port that was forwarded).
Result<Socket> listen_at(std::string_view host_and_port);

}  // namespace gantry::job
