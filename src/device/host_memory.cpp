// SPDX-License-Identifier: BSD-3-Clause
#include "device/host_memory.hpp"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gantry::device {

bool HostMemory::on_stack_or_new_heap(std::uintptr_t address, Bytes bytes) {
    const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (address >= frame) {
        // A buffer of a caller lies above our own frame. On a fiber's stack the frame is outside of
        // the thread's stack, and nothing is known.
        const Range stack = stack_of_this_thread();
        if (stack.holds(frame, 1) && stack.holds(address, bytes)) return true;
    }
    if (heap_begin_ != 0) return false;
    heap_begin_ = first_break();
    return on_stack_or_heap(address, bytes);
}

HostMemory::Range HostMemory::stack_of_this_thread() {
    const pthread_t self = pthread_self();
    for (const Stack& stack : stacks_)
        if (pthread_equal(stack.thread, self) != 0) return stack.range;
    Range range;
    pthread_attr_t attributes;
    if (pthread_getattr_np(self, &attributes) == 0) {
        void* begin = nullptr;
        std::size_t bytes = 0;
        if (pthread_attr_getstack(&attributes, &begin, &bytes) == 0) {
            range.begin = reinterpret_cast<std::uintptr_t>(begin);
            range.end = range.begin + bytes;
        }
        pthread_attr_destroy(&attributes);
    }
    if (stacks_.size() < kStacks) {
        stacks_.push_back({self, range});
    } else {
        stacks_[oldest_stack_] = {self, range};
        oldest_stack_ = (oldest_stack_ + 1) % kStacks;
    }
    return range;
}

// Field 47 of /proc/self/stat; the second field, the program's name, may hold anything but ends at
// the last ')'.
std::uintptr_t HostMemory::first_break() {
    const std::uintptr_t no_heap = ~std::uintptr_t{0};
    std::FILE* file = std::fopen("/proc/self/stat", "re");
    if (file == nullptr) return no_heap;
    char line[2048];
    const std::size_t length = std::fread(line, 1, sizeof(line) - 1, file);
    std::fclose(file);
    line[length] = '\0';
    const char* position = std::strrchr(line, ')');
    for (int field = 2; field < 47 && position != nullptr; ++field)
        position = std::strchr(position + 1, ' ');
    if (position == nullptr) return no_heap;
    const auto begin = static_cast<std::uintptr_t>(std::strtoull(position + 1, nullptr, 10));
    return begin != 0 ? begin : no_heap;
}

bool HostMemory::in_program_data(std::uintptr_t address, Bytes bytes) {
    const LoadedObjects now = loaded_objects();
    if (now != seen_ || segments_.empty()) {
        seen_ = now;
        segments_.clear();
        dl_iterate_phdr(
            [](dl_phdr_info* info, std::size_t, void* data) {
                for (int i = 0; i < info->dlpi_phnum; ++i) {
                    const auto& header = info->dlpi_phdr[i];
                    if (header.p_type != PT_LOAD) continue;
                    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
                    static_cast<std::vector<Range>*>(data)->push_back(
                        {begin, begin + header.p_memsz});
                }
                return 0;
            },
            &segments_);
        std::sort(segments_.begin(), segments_.end(),
                  [](const Range& left, const Range& right) { return left.begin < right.begin; });
    }
    auto after = std::upper_bound(
        segments_.begin(), segments_.end(), address,
        [](std::uintptr_t value, const Range& range) { return value < range.begin; });
    return after != segments_.begin() && (after - 1)->holds(address, bytes);
}

}  // namespace gantry::device
