// SPDX-License-Identifier: BSD-3-Clause
#include "job/letters.hpp"

#include <mpi.h>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace gantry::job {
namespace {

// Longer ones come from somebody who speaks something else.
constexpr std::uint64_t kLongest = std::uint64_t{1} << 30;

Status gone(int error) {
    return failure(MPI_ERR_PORT, "the other side of the connection is gone: {}",
                   error == 0 ? "it has hung up" : std::strerror(error));
}

bool comes_later(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Letters::Letters(Socket socket) : socket_(std::move(socket)) {}

Letters Letters::borrowed(int descriptor) {
    Letters letters;
    letters.borrowed_ = descriptor;
    return letters;
}

void Letters::send(std::string_view text) {
    const std::uint64_t length = text.size();
    outgoing_.append(reinterpret_cast<const char*>(&length), sizeof length);
    outgoing_.append(text);
}

Status Letters::push() {
    while (!outgoing_.empty()) {
        const ssize_t sent =
            ::send(descriptor(), outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) return comes_later(errno) ? success() : gone(errno);
        outgoing_.erase(0, static_cast<std::size_t>(sent));
    }
    return success();
}

// Never more than the letter that is awaited: what follows is for whoever uses the socket then.
Status Letters::pull() {
    std::uint64_t length = 0;
    while (true) {
        std::size_t wanted = sizeof length;
        if (incoming_.size() >= sizeof length) {
            std::memcpy(&length, incoming_.data(), sizeof length);
            if (length > kLongest)
                return failure(MPI_ERR_PORT, "what answers there does not speak Gantry's protocol");
            wanted += static_cast<std::size_t>(length);
        }
        if (incoming_.size() >= sizeof length && incoming_.size() == wanted) return success();
        char buffer[4096];
        const std::size_t most = std::min(sizeof buffer, wanted - incoming_.size());
        const ssize_t read = recv(descriptor(), buffer, most, MSG_DONTWAIT);
        if (read < 0) return comes_later(errno) ? success() : gone(errno);
        if (read == 0) return gone(0);
        incoming_.append(buffer, static_cast<std::size_t>(read));
    }
}

Result<std::optional<std::string>> Letters::poll() {
    GANTRY_TRY(push());
    GANTRY_TRY(pull());
    std::uint64_t length = 0;
    if (incoming_.size() < sizeof length) return std::optional<std::string>();
    std::memcpy(&length, incoming_.data(), sizeof length);
    if (incoming_.size() < sizeof length + length) return std::optional<std::string>();
    std::string letter = incoming_.substr(sizeof length);
    incoming_.clear();
    return std::optional<std::string>(std::move(letter));
}

}  // namespace gantry::job
