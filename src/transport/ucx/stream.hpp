// SPDX-License-Identifier: BSD-3-Clause
//
// Streams: TCP connections of our own, one for each direction or one for both. A large transfer is
// read from where it lies and received where it belongs, so nobody copies but the kernel; frames of
// small messages go between them, and are taken in with whatever lies behind them:
//
//   opener                                        listener
//     | == greeting ===============================> |  who it is (bulk.hpp)
//     | == | StreamHead | bytes | StreamHead | ... => |  recv() into the place of each head
//     | == | StreamHead | frame | StreamHead | ... => |  recv() of all that is here
//
// Nothing blocks: progress() moves what the kernel takes or has. A broken stream is done with; once
// its socket is closed nothing reads or writes user memory on its behalf.
#pragma once

#include "base/status.hpp"
#include "base/units.hpp"

#include <netinet/in.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace gantry::transport::ucx {

class Socket {
  public:
    Socket() = default;
    explicit Socket(int descriptor) : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~Socket();
    bool open() const { return descriptor_ >= 0; }
    int descriptor() const { return descriptor_; }
    // The same connection once more; closed when there is no descriptor for it.
    Socket again() const;
    // Of what is sent: it leaves at once, and may go unacknowledged for so long.
    void set_up_for_sending(Nanoseconds unanswered) const;

  private:
    int descriptor_ = -1;
};

// A door on every IPv4 address of this machine.
class Listener {
  public:
    static Result<Listener> open();
    in_port_t port() const { return port_; }  // network byte order
    // The next connection that waits; closed when there is none.
    Socket accept() const;

  private:
    Socket socket_;
    in_port_t port_ = 0;
};

// Before the bytes of a transfer.
struct StreamHead {
    std::uint32_t magic;
    std::uint32_t what;  // Carried
    std::uint64_t number;
    std::uint64_t region, offset;  // of a put
    std::uint64_t bytes;
};
enum class Carried : std::uint32_t {
    put = 1,
    exposure = 2,
    frame = 3,
    told_put = 4,  // the frame behind it tells of it
};

class OutStream {
  public:
    OutStream() = default;
    explicit OutStream(Socket connected) : socket_(std::move(connected)) {}
    // Told once: the last byte is the kernel's, or why it never will be.
    using Left = std::function<void(Status)>;

    // Begins to connect. `unanswered`: how long what was sent may go unacknowledged.
    static Result<OutStream> connect(const sockaddr_in& address,
                                     std::span<const std::byte> greeting, Nanoseconds unanswered);
    bool open() const { return socket_.open(); }
    const Socket& socket() const { return socket_; }
    bool idle() const { return queue_.empty() && greeting_.empty(); }
    // `data` stays until `left`.
    void push(const StreamHead& head, const std::byte* data, Left left);
    // Of head and data what the kernel takes at once, in bytes; only while idle().
    Result<Bytes> send_now(const StreamHead& head, std::span<const std::byte> data);
    // The rest of what send_now took `sent` bytes of.
    void push_rest(const StreamHead& head, const std::byte* data, Bytes sent, Left left) {
        queue_.push_back({head, data, sent, std::move(left)});
    }
    // Writes what the kernel takes; returns how many transfers have left. A failure closes the
    // stream and ends all that was queued with it.
    Result<int> progress();
    void close(const Status& why);

  private:
    struct Transfer {
        StreamHead head;
        const std::byte* data;
        Bytes sent = 0;  // of head and data
        Left left;
        Bytes rest() const { return sizeof head + head.bytes - sent; }
    };
    Result<Bytes> send_parts(std::span<iovec> parts);
    // One call of the kernel: of the queue one large transfer at most, and what is small before and
    // behind it.
    Status write(Bytes& budget);
    int end_what_left();
    Socket socket_;
    std::vector<std::byte> greeting_;
    std::deque<Transfer> queue_;
};

// What the receiving end is asked and told.
class StreamSink {
  public:
    virtual ~StreamSink() = default;
    // Where its bytes go; null: they are dropped.
    virtual std::byte* place(const StreamHead& head) = 0;
    virtual void arrived(const StreamHead& head, bool dropped) = 0;
    // A frame, valid during the call.
    virtual void frame(std::span<const std::byte> bytes) = 0;
};

class InStream {
  public:
    // `largest_frame`: of the frames that come.
    InStream(Socket socket, Bytes largest_frame);
    bool open() const { return socket_.open(); }
    const Socket& socket() const { return socket_; }
    // The first bytes of the stream; false: not all are here yet.
    Result<bool> read_greeting(std::span<std::byte> greeting);
    // Receives what is here; returns how many transfers and frames have arrived.
    Result<int> progress(StreamSink& sink);
    // Nothing of a transfer or frame has come whose rest has not.
    bool between_transfers() const { return !in_transfer_ && begin_ == end_; }
    void close() { socket_ = Socket(); }

  private:
    // Bytes received; 0: none are here now.
    Result<Bytes> receive(std::byte* to, Bytes bytes);
    // More into the buffer, of which at least `missing` are wanted; false: none are here now.
    Result<bool> fill(Bytes missing);
    // What there is of the transfer; false: none are here now.
    Result<bool> move_transfer();
    Socket socket_;
    // Heads and frames, and what came with them: bytes begin_ to end_.
    std::unique_ptr<std::byte[]> buffer_;
    Bytes capacity_;
    Bytes begin_ = 0, end_ = 0;
    bool dry_ = false;  // the last recv brought less than it had room for
    bool in_transfer_ = false;
    StreamHead head_{};
    Bytes rest_ = 0;  // of the transfer's data
    std::byte* place_ = nullptr;
    Bytes greeting_bytes_ = 0;
};

}  // namespace gantry::transport::ucx
