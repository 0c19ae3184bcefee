// SPDX-License-Identifier: BSD-3-Clause
#include "job/tcp.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>

namespace gantry::job {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPauseMilliseconds = 50;  // between two attempts
constexpr int kQueue = 512;             // connections that may wait to be accepted

struct FreeAddresses {
    void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(std::string_view host_and_port, int flags) {
    const std::size_t colon = host_and_port.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == host_and_port.size())
        return failure(MPI_ERR_OTHER, "'{}' is not of the form host:port", host_and_port);
    std::string host(host_and_port.substr(0, colon));
    const std::string port(host_and_port.substr(colon + 1));
    if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo* addresses = nullptr;
    if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &addresses); error != 0)
        return failure(MPI_ERR_OTHER, "looking up {}: {}. Check the host's name and the port",
                       host_and_port, gai_strerror(error));
    return Addresses(addresses);
}

int milliseconds_until(Clock::time_point limit) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now()).count();
    return static_cast<int>(std::clamp<long>(left, 0, 1000000));
}

// Where nobody listens yet, the system may give a socket the very port that it asks for, of the range
// for outgoing connections, and TCP connects it to itself: it would hear its own words, and hold the
// port that rank 0 wants.
bool met_itself(const Socket& socket) {
    sockaddr_storage here{}, there{};
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    return getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&here), &here_bytes) == 0 &&
           getpeername(socket.descriptor(), reinterpret_cast<sockaddr*>(&there), &there_bytes) ==
               0 &&
           here_bytes == there_bytes && std::memcmp(&here, &there, here_bytes) == 0;
}

// 0, or the error number of the attempt.
int try_to_connect(const addrinfo& address, Clock::time_point limit, Socket& socket) {
    Socket candidate(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                              address.ai_protocol));
    if (!candidate.is_open()) return errno;
    if (connect(candidate.descriptor(), address.ai_addr, address.ai_addrlen) != 0) {
        if (errno != EINPROGRESS) return errno;
        pollfd waiting{candidate.descriptor(), POLLOUT, 0};
        if (poll(&waiting, 1, milliseconds_until(limit)) <= 0) return ETIMEDOUT;
        int error = 0;
        socklen_t length = sizeof error;
        getsockopt(candidate.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length);
        if (error != 0) return error;
    }
    if (met_itself(candidate)) return ECONNREFUSED;
    fcntl(candidate.descriptor(), F_SETFL, 0);
    const int at_once = 1;
    setsockopt(candidate.descriptor(), IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    socket = std::move(candidate);
    return 0;
}

bool may_come_up(int error) {
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH ||
           error == ECONNRESET || error == ETIMEDOUT || error == EAGAIN;
}

}  // namespace

Socket::~Socket() {
    if (descriptor_ >= 0) close(descriptor_);
}

Result<Socket> connect_to(std::string_view host_and_port, Nanoseconds patience, Retry retry) {
    Result<Addresses> addresses = resolve(host_and_port, 0);
    GANTRY_TRY(addresses.status());
    const auto limit = Clock::now() + std::chrono::nanoseconds(patience);
    int error = ENOENT;
    while (true) {
        for (const addrinfo* address = addresses->get(); address != nullptr;
             address = address->ai_next) {
            Socket connected;
            error = try_to_connect(*address, limit, connected);
            if (error == 0) return connected;
        }
        if (retry == Retry::no || !may_come_up(error) || Clock::now() >= limit) break;
        poll(nullptr, 0, std::min(kPauseMilliseconds, milliseconds_until(limit)));
    }
    return failure(MPI_ERR_OTHER, "connecting to {}: {}{}", host_and_port, std::strerror(error),
                   retry == Retry::no
                       ? std::string()
                       : fmt::format(" (tried for {:.1f} s)",
                                     static_cast<double>(patience) / static_cast<double>(kSecond)));
}

Result<Socket> listen_at(std::string_view host_and_port) {
    Result<Addresses> addresses = resolve(host_and_port, AI_PASSIVE);
    GANTRY_TRY(addresses.status());
    const addrinfo& address = **addresses;
    Socket listener(
        ::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
    const int again = 1;
    setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
    int bound = bind(listener.descriptor(), address.ai_addr, address.ai_addrlen);
    if (bound != 0 && errno == EADDRNOTAVAIL && address.ai_family == AF_INET) {
        sockaddr_in any = *reinterpret_cast<const sockaddr_in*>(address.ai_addr);
        any.sin_addr.s_addr = INADDR_ANY;
        bound = bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&any), sizeof any);
    }
    if (bound != 0 || listen(listener.descriptor(), kQueue) != 0)
        return failure(MPI_ERR_OTHER,
                       "listening at {}: {}. Another program may use this port: choose another one "
                       "for all ranks",
                       host_and_port, std::strerror(errno));
    return listener;
}

// A question when nothing was heard for two steps, and one more in each of four.
void notice_when_its_host_is_gone(int socket, Nanoseconds silence) {
    const auto set = [socket](int level, int option, int value) {
        setsockopt(socket, level, option, &value, sizeof value);
    };
    constexpr int kIdle = 2, kUnanswered = 4;
    const auto step = std::clamp<Nanoseconds>(silence / ((kIdle + kUnanswered) * kSecond), 1, 4096);
    set(IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(kIdle * step));
    set(IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(step));
    set(IPPROTO_TCP, TCP_KEEPCNT, kUnanswered);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace gantry::job
