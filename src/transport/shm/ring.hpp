// SPDX-License-Identifier: BSD-3-Clause
//
// A lock-free ring between one writing and one reading process. It is an array of 64-byte lines,
// mapped twice in a row, so a record never wraps:
//
//   line 0:   [ready u32 | header bytes u16 | kind u8 | - ][ body: header, payload ..... 56 bytes ]
//   line 1+:  the rest of the body, for records that do not fit into one line
//
// `ready` is 0 until the whole record is there, then payload bytes + 1: header and payload of a
// small message travel in the one cache line that the reader polls. The reader polls exactly one
// line, the one behind the last record; the writer clears that line's `ready` before it publishes a
// record (old bodies lie there), so it keeps one line free. How far the reader has come stands in a
// line of its own, `consumed`, which the writer reads only when the ring looks full.
//
// This layout is shared between processes of one library build.
#pragma once

#include "transport/transport.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gantry::transport::shm {

inline constexpr Bytes kLine = 64;

struct alignas(kLine) ConsumedWord {
    std::uint32_t lines = 0;  // position of the reader, modulo 2^32
};

namespace record {

struct Head {
    std::uint32_t ready;
    std::uint16_t header_bytes;
    MessageKind kind;
    std::uint8_t unused;
};
static_assert(sizeof(Head) == 8);

constexpr Bytes payload_offset(Bytes header_bytes, Bytes payload_bytes) {
    const Bytes packed = sizeof(Head) + header_bytes;
    // Larger payloads start where copies are fast.
    return packed + payload_bytes <= kLine ? packed : round_up(packed, 16);
}
constexpr std::uint32_t lines(Bytes header_bytes, Bytes payload_bytes) {
    return static_cast<std::uint32_t>(
        divide_up(payload_offset(header_bytes, payload_bytes) + payload_bytes, kLine));
}

}  // namespace record

// Largest payload of a ring: a record takes at most three quarters, so that there is room for the
// next while one is read.
constexpr Bytes largest_payload(Bytes ring_bytes) {
    return ring_bytes / 4 * 3 - record::payload_offset(kMaxHeader, ring_bytes) - kLine;
}

class RingWriter {
  public:
    RingWriter() = default;
    // `memory`: zeroed at first, mapped twice in a row; `bytes`: its size once, a power of two.
    RingWriter(std::byte* memory, Bytes bytes, ConsumedWord& consumed)
        : memory_(memory),
          lines_(static_cast<std::uint32_t>(bytes / kLine)),
          consumed_(&consumed) {}

    // False when there is no room now.
    bool write(MessageKind kind, ConstSpan header, ConstSpan payload) {
        const std::uint32_t lines = record::lines(header.size(), payload.size());
        if (!has_room(lines + 1)) return false;
        std::byte* record = line(position_);
        if (!header.empty())
            std::memcpy(record + sizeof(record::Head), header.data(), header.size());
        if (!payload.empty())
            std::memcpy(record + record::payload_offset(header.size(), payload.size()),
                        payload.data(), payload.size());
        auto* head = reinterpret_cast<record::Head*>(record);
        head->header_bytes = static_cast<std::uint16_t>(header.size());
        head->kind = kind;
        position_ += lines;
        if (cleared_ != position_) clear(position_);
        // Pairs with the acquire in RingReader::read, which goes to the cleared line only after
        // this record.
        ready_word(record).store(static_cast<std::uint32_t>(payload.size()) + 1,
                                 std::memory_order_release);
        // Behind a next message of one line: cleared now, its cache line is not waited for then.
        if (lines_ - (position_ - known_consumed_) >= 2) clear(position_ + 1);
        return true;
    }

    // The reader has taken everything.
    bool is_drained() { return read_consumed() == position_; }

  private:
    void clear(std::uint32_t position) {
        ready_word(line(position)).store(0, std::memory_order_relaxed);
        cleared_ = position;
    }
    bool has_room(std::uint32_t lines) {
        if (lines_ - (position_ - known_consumed_) >= lines) return true;
        known_consumed_ = read_consumed();
        return lines_ - (position_ - known_consumed_) >= lines;
    }
    // Pairs with the release in RingReader::publish: what the reader has left may be overwritten.
    std::uint32_t read_consumed() {
        return std::atomic_ref<std::uint32_t>(consumed_->lines).load(std::memory_order_acquire);
    }
    std::byte* line(std::uint32_t position) const {
        return memory_ + (position & (lines_ - 1)) * kLine;
    }
    static std::atomic_ref<std::uint32_t> ready_word(std::byte* record) {
        return std::atomic_ref<std::uint32_t>(reinterpret_cast<record::Head*>(record)->ready);
    }

    std::byte* memory_ = nullptr;
    std::uint32_t lines_ = 0;
    std::uint32_t position_ = 0;
    std::uint32_t cleared_ = 0;  // the last line whose `ready` was set to 0
    std::uint32_t known_consumed_ = 0;
    ConsumedWord* consumed_ = nullptr;
};

class RingReader {
  public:
    RingReader() = default;
    RingReader(std::byte* memory, Bytes bytes, ConsumedWord& consumed)
        : memory_(memory),
          lines_(static_cast<std::uint32_t>(bytes / kLine)),
          consumed_(&consumed) {}

    // Gives up to `most` records to `take(kind, header, payload)` and returns how many there were.
    template <class Take>
    int read(int most, Take&& take) {
        int taken = 0;
        while (taken < most) {
            std::byte* record = memory_ + (position_ & (lines_ - 1)) * kLine;
            auto* head = reinterpret_cast<record::Head*>(record);
            // Pairs with the release in RingWriter::write.
            const std::uint32_t ready =
                std::atomic_ref<std::uint32_t>(head->ready).load(std::memory_order_acquire);
            if (ready == 0) break;
            const Bytes payload_bytes = ready - 1;
            const std::uint32_t lines = record::lines(head->header_bytes, payload_bytes);
            GANTRY_ASSERT(lines < lines_ && head->header_bytes <= kMaxHeader);
            take(head->kind, ConstSpan(record + sizeof(record::Head), head->header_bytes),
                 ConstSpan(record + record::payload_offset(head->header_bytes, payload_bytes),
                           payload_bytes));
            position_ += lines;
            ++taken;
            // A writer that waits for room gets it before the whole batch is read.
            if (position_ - published_ >= lines_ / 4) publish();
        }
        if (position_ != published_) publish();
        return taken;
    }

  private:
    // Pairs with the acquire in RingWriter::read_consumed.
    void publish() {
        published_ = position_;
        std::atomic_ref<std::uint32_t>(consumed_->lines)
            .store(position_, std::memory_order_release);
    }

    std::byte* memory_ = nullptr;
    std::uint32_t lines_ = 0;
    std::uint32_t position_ = 0;
    std::uint32_t published_ = 0;
    ConsumedWord* consumed_ = nullptr;
};

}  // namespace gantry::transport::shm
