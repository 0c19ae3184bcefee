// SPDX-License-Identifier: BSD-3-Clause
#include "transport/self/self.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::transport::self {
namespace {

struct RecordHead {
    Bytes payload_bytes;
    std::uint32_t header_bytes;
    MessageKind kind;
};

constexpr Bytes kAlignment = 16;
constexpr Bytes kEagerMax = 64 * kKiB;
constexpr double kCopyBytesPerSecond = 10e9;
constexpr Nanoseconds kLatency = 50;

Bytes payload_offset(Bytes header_bytes) {
    return round_up(sizeof(RecordHead) + header_bytes, kAlignment);
}
Bytes record_bytes(Bytes header_bytes, Bytes payload_bytes) {
    return round_up(payload_offset(header_bytes) + payload_bytes, kAlignment);
}

// An empty span may have a null pointer, which memcpy must not see.
void copy(std::byte* to, ConstSpan from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

Status no_remote_memory() {
    return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                   "transport self has no remote memory and no shared slots");
}

}  // namespace

bool MessageQueue::reserve(Bytes bytes) {
    if (bytes <= capacity_) return true;
    const Bytes wanted = std::max(bytes, 2 * capacity_);
    auto* grown = static_cast<std::byte*>(std::realloc(memory_.get(), wanted));
    if (grown == nullptr) return false;
    (void)memory_.release();
    memory_.reset(grown);
    capacity_ = wanted;
    return true;
}

Status MessageQueue::append(MessageKind kind, ConstSpan header, ConstSpan payload) {
    const Bytes bytes = record_bytes(header.size(), payload.size());
    if (!reserve(used_ + bytes))
        return failure(MPI_ERR_NO_MEM, "out of memory for a message of {} bytes to the own rank",
                       payload.size());
    std::byte* record = memory_.get() + used_;
    const RecordHead head{payload.size(), static_cast<std::uint32_t>(header.size()), kind};
    std::memcpy(record, &head, sizeof head);
    copy(record + sizeof head, header);
    copy(record + payload_offset(header.size()), payload);
    used_ += bytes;
    return success();
}

int MessageQueue::deliver_all(int rank, Receiver& receiver) {
    int delivered = 0;
    for (Bytes at = 0; at < used_; ++delivered) {
        const std::byte* record = memory_.get() + at;
        RecordHead head;
        std::memcpy(&head, record, sizeof head);
        at += record_bytes(head.header_bytes, head.payload_bytes);
        receiver.on_message(rank, head.kind, {record + sizeof head, head.header_bytes},
                            {record + payload_offset(head.header_bytes), head.payload_bytes});
    }
    used_ = 0;
    return delivered;
}

PeerFacts SelfTransport::facts(int) const {
    PeerFacts facts;
    facts.self = true;
    facts.eager_max = kEagerMax;
    facts.bytes_per_second = kCopyBytesPerSecond;
    facts.message_latency = kLatency;
    return facts;
}

Status SelfTransport::open(job::Job&, Receiver& receiver) {
    receiver_ = &receiver;
    return success();
}

// Undelivered messages are to this rank, which is leaving: nobody waits for them.
Task<Status> SelfTransport::close(Executor&) {
    receiver_ = nullptr;
    co_return success();
}

Status SelfTransport::send(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) {
    GANTRY_ASSERT(peer == rank_ && header.size() <= kMaxHeader && payload.size() <= kEagerMax);
    return arriving_.append(kind, header, payload);
}

int SelfTransport::progress() {
    if (arriving_.empty() || receiver_ == nullptr) return 0;
    std::swap(arriving_, delivering_);
    return delivering_.deliver_all(rank_, *receiver_);
}

Result<Region> SelfTransport::register_memory(const Extent&) {
    return no_remote_memory();
}
void SelfTransport::put(int, int, const void*, Bytes, const Region&, const RemoteKey&, Bytes,
                        Completion& done) {
    done.complete(no_remote_memory());
}

}  // namespace gantry::transport::self
