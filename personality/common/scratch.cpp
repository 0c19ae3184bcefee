// SPDX-License-Identifier: BSD-3-Clause
//
// The buffers that threads keep for long arrays.
#include "common/scratch.hpp"

#include <cstdlib>
#include <utility>

namespace gantry::personality {
namespace {

// What stands before the bytes of a buffer.
struct alignas(std::max_align_t) Head {
    std::size_t bytes;
};

struct Spare {
    Head* head = nullptr;
    ~Spare() { std::free(head); }
};
thread_local Spare spare;

}  // namespace

void* borrow_buffer(std::size_t bytes) {
    Head* head = std::exchange(spare.head, nullptr);
    if (head == nullptr || head->bytes < bytes) {
        std::free(head);
        head = static_cast<Head*>(std::malloc(sizeof(Head) + bytes));
        if (head == nullptr) return nullptr;
        head->bytes = bytes;
    }
    return head + 1;
}

void return_buffer(void* buffer) {
    Head* head = static_cast<Head*>(buffer) - 1;
    if (spare.head != nullptr && spare.head->bytes > head->bytes) std::swap(spare.head, head);
    std::free(std::exchange(spare.head, head));
}

}  // namespace gantry::personality
