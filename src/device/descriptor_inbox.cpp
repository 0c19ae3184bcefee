// SPDX-License-Identifier: BSD-3-Clause
#include "device/descriptor_inbox.hpp"

#include <mpi.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace gantry::device {

namespace {

constexpr std::size_t kDigits = 5;  // of a name that the kernel gives, behind a zero byte

struct Address {
    sockaddr_un name{};
    socklen_t bytes = 0;
};

Address address_of(std::uint32_t inbox) {
    Address address;
    address.name.sun_family = AF_UNIX;
    const std::string digits = fmt::format("{:05x}", inbox);
    std::memcpy(address.name.sun_path + 1, digits.data(), kDigits);
    address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + kDigits);
    return address;
}

// Room for one descriptor and the sender's identity.
union Control {
    cmsghdr alignment;
    char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
};

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
}

Descriptor::~Descriptor() {
    if (number_ >= 0) ::close(number_);
}

int Descriptor::release() {
    return std::exchange(number_, -1);
}

std::uint32_t DescriptorInbox::number() {
    if (tried_) return number_;
    tried_ = true;
    Descriptor made(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // A bind without a path lets the kernel choose a name.
    if (!made.is_open() ||
        ::setsockopt(made.number(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        ::bind(made.number(), reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)) != 0)
        return 0;
    socklen_t bytes = sizeof name;
    if (::getsockname(made.number(), reinterpret_cast<sockaddr*>(&name), &bytes) != 0 ||
        bytes != address_of(0).bytes)
        return 0;
    char digits[kDigits + 1] = {};
    std::memcpy(digits, name.sun_path + 1, kDigits);
    number_ = static_cast<std::uint32_t>(std::strtoul(digits, nullptr, 16));
    if (number_ != 0) socket_ = std::move(made);
    return number_;
}

bool DescriptorInbox::take(std::span<std::byte> message, Letter& letter) {
    while (socket_.is_open()) {
        iovec piece{message.data(), message.size()};
        Control control{};
        msghdr header{};
        header.msg_iov = &piece;
        header.msg_iovlen = 1;
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        const ssize_t got = ::recvmsg(socket_.number(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0) return false;
        Descriptor descriptor;
        bool ours = false;
        for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
             part = CMSG_NXTHDR(&header, part)) {
            if (part->cmsg_level != SOL_SOCKET) continue;
            if (part->cmsg_type == SCM_RIGHTS) {
                int number = -1;
                std::memcpy(&number, CMSG_DATA(part), sizeof number);
                descriptor = Descriptor(number);
            } else if (part->cmsg_type == SCM_CREDENTIALS) {
                ucred sender{};
                std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
                ours = sender.uid == ::geteuid();
            }
        }
        if (!ours) continue;
        letter.bytes = static_cast<std::size_t>(got);
        letter.descriptor = std::move(descriptor);
        return true;
    }
    return false;
}

Status DescriptorInbox::send(std::uint32_t inbox, std::span<const std::byte> message,
                             int descriptor) {
    const Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    Address to = address_of(inbox);
    iovec piece{const_cast<std::byte*>(message.data()), message.size()};
    Control control{};
    msghdr header{};
    header.msg_name = &to.name;
    header.msg_namelen = to.bytes;
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    if (descriptor >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof descriptor);
        cmsghdr* part = CMSG_FIRSTHDR(&header);
        part->cmsg_level = SOL_SOCKET;
        part->cmsg_type = SCM_RIGHTS;
        part->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    }
    // A full inbox is not waited for: the next message of that memory asks again.
    if (!socket.is_open() || ::sendmsg(socket.number(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return failure(MPI_ERR_OTHER,
                       "sending a file descriptor to the process with inbox {:05x}: {}", inbox,
                       std::strerror(errno));
    return success();
}

}  // namespace gantry::device
