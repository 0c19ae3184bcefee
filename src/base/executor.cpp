// SPDX-License-Identifier: BSD-3-Clause
//
// Frame layout: [header: owner, size class][coroutine frame]. Frames up to 4 KiB are kept for
// reuse, larger ones go back at once.
#include "base/executor.hpp"

#include <cstdint>
#include <new>

namespace gantry {
namespace {

struct alignas(std::max_align_t) FrameHeader {
    std::size_t size_class;
};

}  // namespace

Executor::~Executor() {
    for (FreeFrame*& list : free_) {
        while (list != nullptr) {
            FreeFrame* frame = list;
            list = frame->next;
            ::operator delete(reinterpret_cast<FrameHeader*>(frame) - 1);
        }
    }
}

void* Executor::allocate_frame(std::size_t bytes) noexcept {
    const std::size_t size_class = (bytes + kClassBytes - 1) / kClassBytes;
    FrameHeader* header = nullptr;
    if (size_class < kClasses && free_[size_class] != nullptr) {
        header = reinterpret_cast<FrameHeader*>(free_[size_class]) - 1;
        free_[size_class] = free_[size_class]->next;
    } else {
        void* memory = ::operator new(sizeof(FrameHeader) + size_class * kClassBytes, std::nothrow);
        if (memory == nullptr) return nullptr;
        header = new (memory) FrameHeader{size_class};
    }
    ++live_frames_;
    return header + 1;
}

void Executor::free_frame(void* frame) noexcept {
    FrameHeader* header = static_cast<FrameHeader*>(frame) - 1;
    const std::size_t size_class = header->size_class;
    --live_frames_;
    if (size_class < kClasses) {
        free_[size_class] = new (frame) FreeFrame{free_[size_class]};
    } else {
        ::operator delete(header);
    }
}

}  // namespace gantry
