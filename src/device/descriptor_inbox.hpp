// SPDX-License-Identifier: BSD-3-Clause
//
// DescriptorInbox: where file descriptors of device memory arrive from other processes of the node
// (virtual memory and pools travel so). A datagram socket with a name that the kernel gave (the
// abstract ones, five hexadecimal digits: no file, nothing to clean up), whose number travels in
// messages; who holds the memory sends there when it is asked to. Nobody waits for anybody: a
// datagram is there once the send returned, so the message that speaks of it comes later; one that
// is lost means that the memory stays staged.
//
// pidfd_getfd would need the exporter to keep a descriptor of every allocation open, and the right
// to trace it (yama); a datagram needs neither. Anybody of this machine could send here, so only
// datagrams of this user are taken (the kernel says who sent them).
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace gantry::device {

// A descriptor that is closed at its end.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    ~Descriptor();
    int number() const { return number_; }
    bool is_open() const { return number_ >= 0; }
    int release();

  private:
    int number_ = -1;
};

class DescriptorInbox {
  public:
    // Its number for messages, made at the first call; 0: this system has no such sockets.
    std::uint32_t number();

    // The next datagram, without waiting: its bytes in `message`, its descriptor (or none).
    struct Letter {
        std::size_t bytes = 0;
        Descriptor descriptor;
    };
    // False when nothing (more) is there.
    bool take(std::span<std::byte> message, Letter& letter);

    // To another process's inbox, without waiting; a negative `descriptor` sends none.
    static Status send(std::uint32_t inbox, std::span<const std::byte> message, int descriptor);

  private:
    Descriptor socket_;
    std::uint32_t number_ = 0;
    bool tried_ = false;
};

}  // namespace gantry::device
