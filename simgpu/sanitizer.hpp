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

inline void hide_begin() {
    if (AnnotateIgnoreSyncBegin != nullptr) {
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
}
inline void hide_end() {
    if (AnnotateIgnoreSyncEnd != nullptr) {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    }
}
inline void acquire(void* address) {
    if (__tsan_acquire != nullptr) {
        __tsan_acquire(address);
    }
}
inline void release(void* address) {
    if (__tsan_release != nullptr) {
        __tsan_release(address);
    }
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
