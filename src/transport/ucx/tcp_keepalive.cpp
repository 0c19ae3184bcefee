// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/tcp_keepalive.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace gantry::transport::ucx {

Result<TcpKeepalive> TcpKeepalive::open(const sockaddr_in& address, const Hello& hello,
                                        Nanoseconds unanswered, Nanoseconds now) {
    TcpKeepalive tcp_keepalive;
    tcp_keepalive.hello_ = hello;
    tcp_keepalive.socket_ =
        Socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!tcp_keepalive.is_open())
        return failure(MPI_ERR_OTHER, "a socket: {}", std::strerror(errno));
    tcp_keepalive.socket_.set_up_for_sending(unanswered);
    if (::connect(tcp_keepalive.socket_.descriptor(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof address) != 0 &&
        errno != EINPROGRESS)
        return failure(MPI_ERR_OTHER, "connecting: {}", std::strerror(errno));
    tcp_keepalive.waits_since_ = tcp_keepalive.sent_ = now;
    return tcp_keepalive;
}

bool TcpKeepalive::send(const void* bytes, Bytes count) {
    return ::send(socket_.descriptor(), bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           static_cast<ssize_t>(count);
}

void TcpKeepalive::send_keepalive(Nanoseconds now) {
    if (!is_open() || waits_since_) return;
    const char byte = 0;
    if (!send(&byte, 1)) return;
    sent_ = now;
    waits_since_ = now;
}

bool TcpKeepalive::look(Nanoseconds now) {
    if (!is_open()) return true;
    char byte = 0;
    const ssize_t got = recv(socket_.descriptor(), &byte, 1, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && (errno == ECONNRESET || errno == ECONNREFUSED))) {
        close();
        return true;
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN) return false;
    if (!waits_since_) return true;
    if (!greeted_ && !(greeted_ = send(&hello_, sizeof hello_))) return true;  // not connected yet
    int waiting = 0;  // bytes that the peer's kernel has not acknowledged
    if (ioctl(socket_.descriptor(), SIOCOUTQ, &waiting) != 0 || waiting > 0) return true;
    waits_since_.reset();
    answered_ = now;
    return true;
}

}  // namespace gantry::transport::ucx
