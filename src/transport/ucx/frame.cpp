// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/frame.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace gantry::transport::ucx {
namespace {

void put(std::byte* at, ConstSpan bytes) {
    if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
}

}  // namespace

void Frame::begin(int from) {
    const FrameHead head{kFrameMagic, static_cast<std::uint32_t>(from), 0, 0};
    std::memcpy(bytes(), &head, sizeof head);
    used = sizeof head;
    number = 0;
    rail = 0;
    kept = queued = with_ucx = again = false;
}

void Frame::write_head(std::uint32_t its_number, std::uint32_t received) {
    FrameHead head;
    std::memcpy(&head, bytes(), sizeof head);
    head.number = its_number;
    head.received = received;
    std::memcpy(bytes(), &head, sizeof head);
}

void Frame::append(MessageKind kind, ConstSpan header, ConstSpan payload) {
    const RecordHead record{static_cast<std::uint32_t>(payload.size()),
                            static_cast<std::uint16_t>(header.size()), kind, 0};
    std::byte* at = bytes() + used;
    std::memcpy(at, &record, sizeof record);
    put(at + sizeof record, header);
    put(at + sizeof record + round_up(header.size(), kFrameAlignment), payload);
    used += record_bytes(header.size(), payload.size());
}

FramePool::~FramePool() {
    for (Shelf* each : {&small_, &large_})
        while (each->first != nullptr)
            std::free(std::exchange(each->first, each->first->next));
}

Frame* FramePool::take(Bytes record) {
    const Bytes capacity = sizeof(FrameHead) + record <= usual_ ? usual_ : largest_;
    Shelf& from = shelf(capacity);
    if (from.first != nullptr) {
        --from.count;
        Frame* frame = std::exchange(from.first, from.first->next);
        frame->next = nullptr;
        return frame;
    }
    void* memory = std::malloc(sizeof(Frame) + capacity);
    if (memory == nullptr) return nullptr;
    Frame* frame = new (memory) Frame;
    frame->capacity = capacity;
    return frame;
}

void FramePool::give(Frame* frame) {
    Shelf& to = shelf(frame->capacity);
    if (to.count >= kKept) return std::free(frame);
    frame->next = to.first;
    to.first = frame;
    ++to.count;
}

}  // namespace gantry::transport::ucx
