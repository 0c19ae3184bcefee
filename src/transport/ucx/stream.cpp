// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/stream.hpp"

#include "transport/ucx/frame.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace gantry::transport::ucx {
namespace {

// Moved by one call of progress(): messages wait no longer than that takes.
constexpr Bytes kAtOnce = kMiB;
constexpr int kWaiting = 64;
// Taken in with a head, as it may be a small message and others behind it; of a large transfer so
// much is copied once more.
constexpr Bytes kReadAhead = 8 * kKiB;
// Of one call: heads and bytes of transfers.
constexpr std::size_t kParts = 16;

Status failed(const char* what, int error) {
    return failure(MPI_ERR_OTHER, "{}: {}", what, std::strerror(error));
}

bool is_not_now(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Socket::~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

Socket Socket::again() const {
    return Socket(fcntl(descriptor_, F_DUPFD_CLOEXEC, 0));
}

void Socket::set_up_for_sending(Nanoseconds unanswered) const {
    const int on = 1;
    const auto milliseconds = static_cast<unsigned>(unanswered / kMillisecond);
    setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(descriptor_, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

Result<Listener> Listener::open() {
    Listener listener;
    listener.socket_ = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener.socket_.open()) return failed("a socket", errno);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    auto* address = reinterpret_cast<sockaddr*>(&any);
    socklen_t length = sizeof any;
    const int descriptor = listener.socket_.descriptor();
    if (bind(descriptor, address, length) != 0 || listen(descriptor, kWaiting) != 0 ||
        getsockname(descriptor, address, &length) != 0)
        return failed("listening for connections", errno);
    listener.port_ = any.sin_port;
    return listener;
}

Socket Listener::accept() const {
    return Socket(accept4(socket_.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

// --- sending -------------------------------------------------------------------------------------

Result<OutStream> OutStream::connect(const sockaddr_in& address,
                                     std::span<const std::byte> greeting, Nanoseconds unanswered) {
    OutStream stream;
    stream.socket_ = Socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!stream.socket_.open()) return failed("a socket", errno);
    const int descriptor = stream.socket_.descriptor();
    stream.socket_.set_up_for_sending(unanswered);
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno != EINPROGRESS)
        return failed("connecting", errno);
    stream.greeting_.assign(greeting.begin(), greeting.end());
    return stream;
}

void OutStream::push(const StreamHead& head, const std::byte* data, Left left) {
    queue_.push_back({head, data, 0, std::move(left)});
}

Result<Bytes> OutStream::send_parts(std::span<iovec> parts) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = sendmsg(socket_.descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<Bytes>(sent);
    if (is_not_now(errno)) return Bytes{0};
    return failed("sending", errno);
}

Result<Bytes> OutStream::send_now(const StreamHead& head, std::span<const std::byte> data) {
    iovec parts[] = {{const_cast<StreamHead*>(&head), sizeof head},
                     {const_cast<std::byte*>(data.data()), data.size()}};
    return send_parts(parts);
}

Status OutStream::write(Bytes& budget) {
    std::array<iovec, kParts> parts{};
    std::size_t count = 0;
    bool large = false;
    if (!greeting_.empty()) parts[count++] = {greeting_.data(), greeting_.size()};
    for (Transfer& transfer : queue_) {
        if (count + 2 > parts.size()) break;
        if (transfer.head.bytes > kReadAhead && std::exchange(large, true)) break;
        const Bytes of_head = std::min<Bytes>(transfer.sent, sizeof transfer.head);
        const Bytes of_data = transfer.sent - of_head;
        parts[count++] = {reinterpret_cast<std::byte*>(&transfer.head) + of_head,
                          sizeof transfer.head - of_head};
        parts[count++] = {const_cast<std::byte*>(transfer.data) + of_data,
                          transfer.head.bytes - of_data};
    }
    Result<Bytes> sent = send_parts({parts.data(), count});
    if (!sent.ok()) return sent.status();
    budget = *sent == 0 ? 0 : budget - std::min(budget, *sent);
    Bytes left = *sent;
    const Bytes greeted = std::min<Bytes>(left, greeting_.size());
    greeting_.erase(greeting_.begin(), greeting_.begin() + static_cast<std::ptrdiff_t>(greeted));
    left -= greeted;
    for (auto transfer = queue_.begin(); left > 0; ++transfer) {
        const Bytes of_it = std::min(left, transfer->rest());
        transfer->sent += of_it;
        left -= of_it;
    }
    return success();
}

// Whoever hears of it may add to the queue, or close the stream.
int OutStream::end_what_left() {
    int left = 0;
    while (!queue_.empty() && queue_.front().rest() == 0) {
        const Transfer ended = std::move(queue_.front());
        queue_.pop_front();
        ended.left(success());
        ++left;
    }
    return left;
}

Result<int> OutStream::progress() {
    int left = 0;
    Bytes budget = kAtOnce;
    while (budget > 0 && !idle()) {
        if (Status broken = write(budget)) {
            close(broken);
            return broken;
        }
        left += end_what_left();
    }
    return left;
}

void OutStream::close(const Status& why) {
    socket_ = Socket();
    greeting_.clear();
    for (const Transfer& transfer : std::exchange(queue_, {}))
        transfer.left(why);
}

// --- receiving -----------------------------------------------------------------------------------

Result<Bytes> InStream::receive(std::byte* to, Bytes bytes) {
    const ssize_t got = recv(socket_.descriptor(), to, bytes, MSG_DONTWAIT);
    if (got > 0) return static_cast<Bytes>(got);
    if (got < 0 && is_not_now(errno)) return Bytes{0};
    return got == 0 ? failure(MPI_ERR_OTHER, "the peer closed the connection")
                    : failed("receiving", errno);
}

InStream::InStream(Socket socket, Bytes largest_frame)
    : socket_(std::move(socket)),
      capacity_(std::max(kReadAhead, sizeof(StreamHead) + largest_frame)) {
    buffer_.reset(new (std::nothrow) std::byte[capacity_]);
    if (buffer_ == nullptr) close();
}

Result<bool> InStream::read_greeting(std::span<std::byte> greeting) {
    if (greeting_bytes_ < greeting.size()) {
        Result<Bytes> got =
            receive(greeting.data() + greeting_bytes_, greeting.size() - greeting_bytes_);
        if (!got.ok()) return got.status();
        greeting_bytes_ += *got;
    }
    return greeting_bytes_ == greeting.size();
}

Result<bool> InStream::fill(Bytes missing) {
    if (begin_ == end_) begin_ = end_ = 0;
    const Bytes wanted = begin_ == end_ ? kReadAhead : missing;
    if (capacity_ - end_ < wanted) {
        std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
        end_ -= std::exchange(begin_, 0);
    }
    Result<Bytes> got = receive(buffer_.get() + end_, wanted);
    if (!got.ok()) return got.status();
    end_ += *got;
    dry_ = *got < wanted;
    return *got > 0;
}

Result<bool> InStream::move_transfer() {
    if (begin_ < end_) {
        const Bytes bytes = std::min(rest_, end_ - begin_);
        if (place_ != nullptr) {
            std::memcpy(place_, buffer_.get() + begin_, bytes);
            place_ += bytes;
        }
        begin_ += bytes;
        rest_ -= bytes;
        return true;
    }
    begin_ = end_ = 0;
    Result<Bytes> got = place_ != nullptr ? receive(place_, rest_)
                                          : receive(buffer_.get(), std::min(rest_, capacity_));
    if (!got.ok()) return got.status();
    if (place_ != nullptr) place_ += *got;
    rest_ -= *got;
    return *got > 0;
}

Result<int> InStream::progress(StreamSink& sink) {
    int arrived = 0;
    // Who hears of a transfer by the frame behind it goes on before the next one is received. What
    // lies in our buffer is taken in all the same: no poll of the socket would tell of it.
    bool transfers = false, told = false;
    Bytes moved = 0;
    while (moved < kAtOnce && !(told && begin_ == end_)) {
        if (in_transfer_) {
            const Bytes before = rest_;
            if (rest_ > 0) {
                Result<bool> more = move_transfer();
                if (!more.ok()) return more.status();
                if (!*more) break;
            }
            moved += before - rest_;
            if (rest_ > 0) continue;
            in_transfer_ = false;
            transfers = true;
            ++arrived;
            sink.arrived(head_, place_ == nullptr);
            continue;
        }
        const Bytes here = end_ - begin_;
        Bytes wanted = sizeof head_;
        if (here >= sizeof head_) {
            std::memcpy(&head_, buffer_.get() + begin_, sizeof head_);
            if (head_.magic != kFrameMagic) return failure(MPI_ERR_INTERN, "a damaged stream");
            if (static_cast<Carried>(head_.what) != Carried::frame) {
                begin_ += sizeof head_;
                in_transfer_ = true;
                place_ = sink.place(head_);
                rest_ = head_.bytes;
                continue;
            }
            if (head_.bytes > capacity_ - sizeof head_)
                return failure(MPI_ERR_INTERN, "a damaged stream");
            wanted += head_.bytes;
        }
        if (here < wanted) {
            if (std::exchange(dry_, false)) break;  // the next recv would bring nothing
            Result<bool> more = fill(wanted - here);
            if (!more.ok()) return more.status();
            if (!*more) break;
            continue;
        }
        const std::span frame(buffer_.get() + begin_ + sizeof head_, head_.bytes);
        begin_ += wanted;
        moved += wanted;
        ++arrived;
        sink.frame(frame);
        told = transfers;
    }
    return arrived;
}

}  // namespace gantry::transport::ucx
