// SPDX-License-Identifier: BSD-3-Clause
#include "shared_page.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace simgpu {
namespace {

bool is_gone(pid_t process) {
    return kill(process, 0) != 0 && errno == ESRCH;
}

// Also one whose parent has not heard of its end, whom kill() finds still.
bool has_died(pid_t process) {
    if (is_gone(process)) {
        return true;
    }
    std::FILE* file = std::fopen(("/proc/" + std::to_string(process) + "/stat").c_str(), "re");
    if (file == nullptr) {
        return is_gone(process);
    }
    char text[256] = {};
    const std::size_t length = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    // The state stands behind the program's name in brackets.
    const std::string_view all(text, length);
    const std::size_t end = all.rfind(')');
    return end != std::string_view::npos && end + 2 < all.size() &&
           (all[end + 2] == 'Z' || all[end + 2] == 'X');
}

std::string prefix() {
    return "/simgpu-" + std::to_string(getuid()) + "-";
}

// The file, with the lock that keeps others from removing it.
int open_locked(const std::string& name) {
    for (int attempt = 0; attempt < 100; ++attempt) {
        const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        struct stat about {};
        if (fd < 0 || flock(fd, LOCK_SH) != 0 || fstat(fd, &about) != 0) {
            return -1;
        }
        if (about.st_nlink > 0) {
            return fd;
        }
        close(fd);  // removed between opening and locking: make a new one
    }
    return -1;
}

void remove_abandoned() {
    DIR* directory = opendir("/dev/shm");
    if (directory == nullptr) {
        return;
    }
    while (const dirent* item = readdir(directory)) {
        const std::string name = std::string("/") + item->d_name;
        if (name.rfind(prefix(), 0) != 0) {
            continue;
        }
        const int fd = shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            shm_unlink(name.c_str());
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    closedir(directory);
}

}  // namespace

void SharedPage::open(const std::string& run) {
    run_ = run;
    remove_abandoned();
    // Without a name, the processes of one login session or CI step belong together.
    file_ = prefix() + (run.empty() ? "session" + std::to_string(getsid(0)) : run);
    fd_ = open_locked(file_);
    void* place = MAP_FAILED;
    if (fd_ >= 0 && ftruncate(fd_, sizeof(Page)) == 0) {
        place = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    }
    if (place == MAP_FAILED) {
        place =
            mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    page_ = static_cast<Page*>(place);
}

void SharedPage::leave() {
    if (fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) == 0) {
        shm_unlink(file_.c_str());  // nobody else has it
    }
}

void SharedPage::lock(int physical_device) {
    DeviceTimes& device = page_->devices[physical_device];
    const pid_t self = getpid();
    for (int attempt = 1;; ++attempt) {
        pid_t holder = 0;
        if (device.lock.compare_exchange_weak(holder, self, std::memory_order_acquire)) {
            return;
        }
        if (attempt % 1000 != 0) {
            continue;
        }
        sched_yield();
        // A rank killed in the few instructions of the critical section must not stop the others, nor
        // a parent that waits for one of them before it asks after the dead.
        if (holder != 0 && has_died(holder)) {
            device.lock.compare_exchange_strong(holder, 0, std::memory_order_relaxed);
        }
    }
}

Interval SharedPage::reserve(int physical_device, const Cost& cost, Nanoseconds ready,
                             Nanoseconds turn_price) {
    if (cost.engine == kNoEngine && !cost.needs_turn) {
        return {ready, ready + cost.occupancy};
    }
    DeviceTimes& device = page_->devices[physical_device];
    lock(physical_device);
    Nanoseconds start = ready;
    if (cost.engine != kNoEngine) {
        start = std::max(start, device.free_at[cost.engine]);
    }
    if (cost.needs_turn) {
        const pid_t self = getpid();
        if (device.turn_owner != self) {
            const bool alone = device.turn_owner == 0 || is_gone(device.turn_owner);
            start = std::max(start, device.turn_busy_until) + (alone ? 0 : turn_price);
            device.turn_owner = self;
        }
        device.turn_busy_until = std::max(device.turn_busy_until, start + cost.occupancy);
    }
    const Nanoseconds end = start + cost.occupancy;
    if (cost.engine != kNoEngine) {
        device.free_at[cost.engine] = end;
    }
    device.lock.store(0, std::memory_order_release);
    return {start, end};
}

EventSlot* SharedPage::new_event_slot() {
    for (EventSlot& slot : page_->events) {
        std::uint32_t nobody = 0;
        if (slot.references.compare_exchange_strong(nobody, 1)) {
            slot.recorded.store(0);
            slot.completed.store(0);
            return &slot;
        }
    }
    return nullptr;
}

EventSlot* SharedPage::event_slot(std::uint32_t index) {
    return index < kEventSlots ? &page_->events[index] : nullptr;
}

std::uint32_t SharedPage::index_of(const EventSlot* slot) const {
    return static_cast<std::uint32_t>(slot - page_->events);
}

}  // namespace simgpu
