// SPDX-License-Identifier: BSD-3-Clause
//
// Frame: what one active message of UCX carries - one or several of our messages to one peer, one
// behind the other (docs/wire.md section 4). Little-endian, every part begins at a multiple of 8:
//
//   | magic u32 | from u32 | number u32 | received u32 |  then for each message:
//   | payload bytes u32 | header bytes u16 | kind u8 | 0 | header ... | payload ... |
//
// A frame that UCX has not finished with keeps its memory; then it goes back to the pool. With several
// rails a frame is kept until the peer has acknowledged it, and goes again when its rail fails.
#pragma once

#include "transport/transport.hpp"

#include <cstring>
#include <memory>

namespace gantry::transport::ucx {

inline constexpr std::uint32_t kFrameMagic = 0x47523033;  // "GR03"

// Numbers of our active messages at UCX.
inline constexpr unsigned kFrameId = 0;
inline constexpr unsigned kPieceId = 1;

struct FrameHead {
    std::uint32_t magic;
    std::uint32_t from;  // rank of the sender
    // With several rails, else 0. An acknowledgement alone has no number.
    std::uint32_t number;
    std::uint32_t received;  // of the peer's frames, all before this number have come
};
struct RecordHead {
    std::uint32_t payload_bytes;
    std::uint16_t header_bytes;
    MessageKind kind;
    std::uint8_t zero;
};
inline constexpr Bytes kFrameAlignment = 8;

struct Frame {
    Frame* next = nullptr;
    void* owner = nullptr;  // the peer it is for, while UCX has it
    Bytes used = 0;
    Bytes capacity = 0;
    // With several rails:
    std::uint32_t number = 0;  // 0: not sent yet, or not kept
    int rail = 0;              // that took it last
    bool kept = false;         // until it is acknowledged
    bool queued = false;       // to leave
    bool with_ucx = false;
    bool again = false;  // its rail failed while UCX had it
    std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }

    static constexpr Bytes record_bytes(Bytes header, Bytes payload) {
        return sizeof(RecordHead) + round_up(header, kFrameAlignment) +
               round_up(payload, kFrameAlignment);
    }
    bool fits(Bytes more) const { return used + more <= capacity; }
    void begin(int from);
    void append(MessageKind kind, ConstSpan header, ConstSpan payload);
    void write_head(std::uint32_t its_number, std::uint32_t received);
};

// Frames of two sizes: for small messages together, and for one message of the largest size.
class FramePool {
  public:
    // `largest`: of one message with its bookkeeping.
    FramePool(Bytes usual, Bytes largest) : usual_(usual), largest_(largest) {}
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;
    ~FramePool();
    // Room for a record of that size; null when memory is exhausted.
    Frame* take(Bytes record);
    void give(Frame* frame);
    Bytes largest() const { return largest_; }

  private:
    static constexpr int kKept = 64;
    struct Shelf {
        Frame* first = nullptr;
        int count = 0;
    };
    Shelf& shelf(Bytes capacity) { return capacity == usual_ ? small_ : large_; }
    Bytes usual_, largest_;
    Shelf small_, large_;
};

// Calls visit(kind, header, payload) for each message of a frame; false when it is damaged.
template <class Visit>
bool each_record(ConstSpan frame, int& from, Visit&& visit) {
    FrameHead head;
    if (frame.size() < sizeof head) return false;
    std::memcpy(&head, frame.data(), sizeof head);
    if (head.magic != kFrameMagic) return false;
    from = static_cast<int>(head.from);
    frame = frame.subspan(sizeof head);
    while (!frame.empty()) {
        RecordHead record;
        if (frame.size() < sizeof record) return false;
        std::memcpy(&record, frame.data(), sizeof record);
        const Bytes all = Frame::record_bytes(record.header_bytes, record.payload_bytes);
        if (frame.size() < all) return false;
        const Bytes payload_at = sizeof record + round_up(record.header_bytes, kFrameAlignment);
        visit(record.kind, frame.subspan(sizeof record, record.header_bytes),
              frame.subspan(payload_at, record.payload_bytes));
        frame = frame.subspan(all);
    }
    return true;
}

}  // namespace gantry::transport::ucx
