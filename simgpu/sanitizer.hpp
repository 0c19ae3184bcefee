// SPDX-License-Identifier: BSD-3-Clause
// ThreadSanitizer as a race detector for programs that use the driver. The simulator itself is not
// instrumented and hides its own lock; it publishes only the orderings that CUDA promises: enqueue
// happens before the operation, the operation before a successful query or synchronise. All symbols
// are weak: nothing happens without the sanitizer.
#pragma once

extern "C" {
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreSyncBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreSyncEnd(const char* file, int line);
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
}

namespace simgpu::sanitizer {

inline bool watching() {
    return __tsan_acquire != nullptr;
}

// How deep this thread is in the simulator's own business.
inline thread_local int t_hidden = 0;

inline void hide_begin() {
    ++t_hidden;
    if (AnnotateIgnoreSyncBegin != nullptr) {
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
}
inline void hide_end() {
    --t_hidden;
    if (AnnotateIgnoreSyncEnd != nullptr) {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    }
}

// While hidden, the sanitizer ignores these two as well: they must step out for a moment.
inline void publish(void (*order)(void*), void* address) {
    if (order == nullptr) {
        return;
    }
    const bool hidden = t_hidden > 0;
    if (hidden) {
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    }
    order(address);
    if (hidden) {
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
}
inline void acquire(void* address) {
    publish(__tsan_acquire, address);
}
inline void release(void* address) {
    publish(__tsan_release, address);
}

// Memory accesses and synchronisation inside are the simulator's own business.
class Hidden {
  public:
    Hidden() { hide_begin(); }
    ~Hidden() { hide_end(); }
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;
};
// Inside Hidden: what follows is the program's memory.
class Visible {
  public:
    Visible() { hide_end(); }
    ~Visible() { hide_begin(); }
    Visible(const Visible&) = delete;
    Visible& operator=(const Visible&) = delete;
};

}  // namespace simgpu::sanitizer
