// SPDX-License-Identifier: BSD-3-Clause
// The simulator's one lock, its condition and its clock. The condition waits on CLOCK_MONOTONIC,
// because modelled times are read from that clock and are shared between processes. Built on
// pthreads directly: ThreadSanitizer must recognise the calls although this library is not
// instrumented.
#pragma once

#include <pthread.h>
#include <time.h>

#include <cstdint>

namespace simgpu {

using Nanoseconds = std::int64_t;

inline Nanoseconds clock_now() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<Nanoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class Mutex {
  public:
    void lock() { pthread_mutex_lock(&mutex_); }
    bool try_lock() { return pthread_mutex_trylock(&mutex_) == 0; }
    void unlock() { pthread_mutex_unlock(&mutex_); }
    pthread_mutex_t* native() { return &mutex_; }

  private:
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

class Guard {
  public:
    explicit Guard(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
    ~Guard() { mutex_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

  private:
    Mutex& mutex_;
};

// Releases a lock for a while: around data movement and user code.
class Unguard {
  public:
    explicit Unguard(Mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~Unguard() { mutex_.lock(); }
    Unguard(const Unguard&) = delete;
    Unguard& operator=(const Unguard&) = delete;

  private:
    Mutex& mutex_;
};

class Condition {
  public:
    Condition() {
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&condition_, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    void wait(Mutex& mutex) { pthread_cond_wait(&condition_, mutex.native()); }
    void wait_until(Mutex& mutex, Nanoseconds when) {
        const timespec deadline{static_cast<time_t>(when / 1'000'000'000),
                                static_cast<long>(when % 1'000'000'000)};
        pthread_cond_timedwait(&condition_, mutex.native(), &deadline);
    }
    void notify_all() { pthread_cond_broadcast(&condition_); }

  private:
    pthread_cond_t condition_;
};

}  // namespace simgpu
