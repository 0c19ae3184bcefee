// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that found no room in a peer's ring, in order. Large ones live in blocks that are kept
// for the next burst: memory that goes back to the system costs a page fault per 4 KiB when it
// returns, more than the copy itself.
#pragma once

#include "transport/transport.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace gantry::transport::shm {

// Memory for the backlogs of all peers.
class BacklogMemory {
  public:
    // `largest`: of any message, with its bookkeeping.
    explicit BacklogMemory(Bytes largest = 0) : block_bytes_(largest) {}
    BacklogMemory(const BacklogMemory&) = delete;
    BacklogMemory& operator=(const BacklogMemory&) = delete;
    ~BacklogMemory() {
        while (free_ != nullptr)
            ::operator delete(std::exchange(free_, free_->next));
    }
    void set_largest(Bytes largest) { block_bytes_ = largest; }

    void* allocate(Bytes bytes) {
        if (bytes < kSmallBytes) return ::operator new(bytes, std::nothrow);
        if (free_ == nullptr) return ::operator new(block_bytes_, std::nothrow);
        --free_blocks_;
        return std::exchange(free_, free_->next);
    }
    void release(void* memory, Bytes bytes) {
        if (bytes < kSmallBytes || free_blocks_ * block_bytes_ > kKeptBytes)
            return ::operator delete(memory);
        free_ = new (memory) FreeBlock{free_};
        ++free_blocks_;
    }

  private:
    static constexpr Bytes kSmallBytes = 4 * kKiB;
    static constexpr Bytes kKeptBytes = 4 * kMiB;
    struct FreeBlock {
        FreeBlock* next;
    };
    Bytes block_bytes_;
    FreeBlock* free_ = nullptr;
    Bytes free_blocks_ = 0;
};

class Backlog {
  public:
    explicit Backlog(BacklogMemory& memory) : memory_(memory) {}
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;
    ~Backlog() { clear(); }

    bool empty() const { return first_ == nullptr; }

    Status append(MessageKind kind, ConstSpan header, ConstSpan payload) {
        void* memory = memory_.allocate(bytes_for(header.size(), payload.size()));
        if (memory == nullptr)
            return failure(MPI_ERR_NO_MEM,
                           "out of memory for a message of {} bytes that waits for its peer",
                           payload.size());
        auto* message = new (memory) Message{nullptr, kind, header.size(), payload.size()};
        if (!header.empty()) std::memcpy(message->bytes(), header.data(), header.size());
        if (!payload.empty())
            std::memcpy(message->bytes() + header.size(), payload.data(), payload.size());
        (last_ != nullptr ? last_->next : first_) = message;
        last_ = message;
        return success();
    }

    // Offers the messages to write(kind, header, payload), oldest first, until it returns false;
    // returns how many it took.
    template <class Write>
    int drain(Write&& write) {
        int taken = 0;
        while (first_ != nullptr) {
            const ConstSpan all(first_->bytes(), first_->header_bytes + first_->payload_bytes);
            if (!write(first_->kind, all.first(first_->header_bytes),
                       all.subspan(first_->header_bytes)))
                break;
            drop_first();
            ++taken;
        }
        return taken;
    }

    void clear() {
        while (first_ != nullptr)
            drop_first();
    }

    static Bytes bytes_for(Bytes header_bytes, Bytes payload_bytes) {
        return sizeof(Message) + header_bytes + payload_bytes;
    }

  private:
    struct Message {
        Message* next;
        MessageKind kind;
        Bytes header_bytes;
        Bytes payload_bytes;
        std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
    };
    void drop_first() {
        Message* message = std::exchange(first_, first_->next);
        if (first_ == nullptr) last_ = nullptr;
        memory_.release(message, bytes_for(message->header_bytes, message->payload_bytes));
    }

    BacklogMemory& memory_;
    Message* first_ = nullptr;
    Message* last_ = nullptr;
};

}  // namespace gantry::transport::shm
