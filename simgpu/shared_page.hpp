// SPDX-License-Identifier: BSD-3-Clause
// What the processes of one run share about the devices: when each engine is free, who had the
// compute queue last, and the slots of interprocess events. One small file in /dev/shm per user and
// run, zero means empty, so that nobody has to initialise it. All times are CLOCK_MONOTONIC.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "lock.hpp"
#include "model.hpp"

namespace simgpu {

inline constexpr int kMaxDevices = 16;
inline constexpr int kEventSlots = 2048;

struct EventSlot {
    std::atomic<std::uint32_t> references;
    std::uint32_t unused;
    std::atomic<std::uint64_t> recorded;   // records enqueued, by anybody
    std::atomic<std::uint64_t> completed;  // the newest record that was reached
};

struct Interval {
    Nanoseconds start = 0;
    Nanoseconds end = 0;
};

class SharedPage {
  public:
    // Never fails: without shared memory the page is private and only contention between processes
    // is lost.
    void open(const std::string& run);

    // Takes the engine from `ready` on. Calls of one process come in the order of their ready
    // times.
    Interval reserve(int physical_device, const Cost& cost, Nanoseconds ready,
                     Nanoseconds turn_price);

    // The device's times, which reserve() changes, are this process's until it ends or reserves.
    void lock(int physical_device);

    EventSlot* new_event_slot();
    EventSlot* event_slot(std::uint32_t index);
    std::uint32_t index_of(const EventSlot* slot) const;
    const std::string& run_name() const { return run_; }

    void leave();

  private:
    struct DeviceTimes {
        std::atomic<pid_t> lock;
        pid_t turn_owner;
        Nanoseconds turn_busy_until;
        Nanoseconds free_at[kEngines];
    };
    struct Page {
        DeviceTimes devices[kMaxDevices];
        EventSlot events[kEventSlots];
    };

    Page* page_ = nullptr;
    std::string run_;
    std::string file_;
    int fd_ = -1;
};

}  // namespace simgpu
