// SPDX-License-Identifier: BSD-3-Clause
// A libgdrapi.so.2 (GDRCopy) over the simulated driver's memory, in a folder of its own: only who
// puts that folder into LD_LIBRARY_PATH, or loads the file itself, has it. As strict as the real
// one, or stricter:
//
//   pin     whole GPU pages that hold memory of cuMemAlloc; pools, virtual and managed memory and
//           other processes' memory are refused
//   map     only the bytes of allocations are there, the rest of a page faults
//   free    takes the bytes away from every mapping at once: touching them faults (SIGSEGV here,
//           SIGBUS with the real driver)
//
// SIMGPU_GDR=refuse=open (or pin, map), bar=BYTES; tests set the same at run time and read counts
// through the functions at the end.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <string>

#include "device/cuda/gdr_abi.h"
#include "simgpu.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct gdr {
    int unused = 0;
};

namespace {

constexpr std::uint64_t kPage = 65536;
constexpr std::size_t kRanges = 256;  // allocations in one mapping, at most

struct Pin {
    std::uint64_t begin = 0;
    std::size_t bytes = 0;
    char* mapped = nullptr;
};

struct State {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    std::list<Pin> pins;
    std::size_t mapped_bytes = 0;
    std::size_t bar_bytes = ~std::size_t{0};
    std::string refused;
    bool watching = false;
    decltype(&::simgpu_find_pages) find_pages = nullptr;
    decltype(&::simgpu_window_time) window_time = nullptr;
};
// Never destroyed: the driver may free memory while the process ends.
State& state() {
    static State* const the_state = new State;
    return *the_state;
}
class Guard {
  public:
    Guard() { pthread_mutex_lock(&state().mutex); }
    ~Guard() { pthread_mutex_unlock(&state().mutex); }
};

// Costs its caller, from its beginning to its end, what it costs on the modelled machine.
class Spend {
  public:
    Spend(simgpu_window what, std::size_t bytes) {
        const auto time = state().window_time != nullptr ? state().window_time(what, bytes) : 0;
        until_ = time > 0 ? now() + time : 0;
    }
    ~Spend() {
        while (until_ != 0 && now() < until_) {
        }
    }

  private:
    static std::int64_t now() {
        timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        return std::int64_t{time.tv_sec} * 1000000000 + time.tv_nsec;
    }
    std::int64_t until_ = 0;
};

enum Count { kOpen, kPin, kMap, kUnmap, kUnpin, kRead, kWrite, kCounts };
constexpr const char* kNames[kCounts] = {"open", "pin", "map", "unmap", "unpin", "read", "write"};
std::atomic<std::uint64_t> g_counts[kCounts];

// The state's lock is held.
void settle(const char* text) {
    State& s = state();
    s.refused.clear();
    s.bar_bytes = ~std::size_t{0};
    std::string rest = text != nullptr ? text : "";
    while (!rest.empty()) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        const std::string part = rest.substr(0, comma);
        rest.erase(0, comma + 1);
        if (part.rfind("refuse=", 0) == 0) s.refused = part.substr(7);
        if (part.rfind("bar=", 0) == 0) s.bar_bytes = strtoull(part.c_str() + 4, nullptr, 10);
    }
}

// The driver is about to free these bytes and holds its lock.
void revoke(std::uint64_t begin, std::size_t bytes) {
    Guard guard;
    for (const Pin& pin : state().pins) {
        if (pin.mapped == nullptr) continue;
        const std::uint64_t from = std::max(begin, pin.begin);
        const std::uint64_t to = std::min(begin + bytes, pin.begin + pin.bytes);
        if (from < to)
            mmap(pin.mapped + (from - pin.begin), to - from, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
}

Pin* pin_of(GdrHandle handle) {
    for (Pin& pin : state().pins)
        if (&pin == reinterpret_cast<Pin*>(handle.value)) return &pin;
    return nullptr;
}

}  // namespace

EXPORT gdr* gdr_open() {
    ++g_counts[kOpen];
    Guard guard;
    State& s = state();
    if (const char* text = getenv("SIMGPU_GDR"); text != nullptr && s.refused.empty()) settle(text);
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (driver == nullptr || s.refused == "open") return nullptr;
    s.find_pages = reinterpret_cast<decltype(s.find_pages)>(dlsym(driver, "simgpu_find_pages"));
    s.window_time = reinterpret_cast<decltype(s.window_time)>(dlsym(driver, "simgpu_window_time"));
    const auto on_free =
        reinterpret_cast<decltype(&::simgpu_on_free)>(dlsym(driver, "simgpu_on_free"));
    if (s.find_pages == nullptr || on_free == nullptr) return nullptr;
    if (!s.watching) on_free(&revoke);
    s.watching = true;
    return new gdr;
}

EXPORT int gdr_close(gdr* connection) {
    delete connection;
    return 0;
}

EXPORT int gdr_pin_buffer(gdr*, unsigned long address, std::size_t bytes, std::uint64_t,
                          std::uint32_t, GdrHandle* handle) {
    ++g_counts[kPin];
    simgpu_pages found[kRanges];
    // Not under our lock: the driver calls us with its own.
    const std::size_t ranges = state().find_pages(address, bytes, found, kRanges);
    Guard guard;
    State& s = state();
    if (s.refused == "pin" || ranges == 0 || ranges > kRanges) return EINVAL;
    if (address % kPage != 0 || bytes % kPage != 0 || bytes == 0) return EINVAL;
    s.pins.push_back({address, bytes, nullptr});
    handle->value = reinterpret_cast<unsigned long>(&s.pins.back());
    return 0;
}

EXPORT int gdr_pin_buffer_v2(gdr* connection, unsigned long address, std::size_t bytes,
                             std::uint32_t flags, GdrHandle* handle) {
    return flags == 0 ? gdr_pin_buffer(connection, address, bytes, 0, 0, handle) : EINVAL;
}

EXPORT int gdr_map(gdr*, GdrHandle handle, void** mapping, std::size_t bytes) {
    ++g_counts[kMap];
    const Spend spend(SIMGPU_WINDOW_OPEN, bytes);
    simgpu_pages found[kRanges];
    std::uint64_t begin = 0;
    {
        Guard guard;
        const Pin* pin = pin_of(handle);
        if (pin == nullptr || pin->mapped != nullptr || bytes > pin->bytes) return EINVAL;
        begin = pin->begin;
    }
    const std::size_t ranges = std::min(state().find_pages(begin, bytes, found, kRanges), kRanges);
    Guard guard;
    State& s = state();
    if (s.refused == "map" || s.mapped_bytes + bytes > s.bar_bytes) return ENOMEM;
    void* room =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return ENOMEM;
    for (std::size_t i = 0; i < ranges; ++i) {
        const std::uint64_t from = std::max<std::uint64_t>(begin, found[i].begin);
        const std::uint64_t to =
            std::min<std::uint64_t>(begin + bytes, found[i].begin + found[i].bytes);
        mmap(static_cast<char*>(room) + (from - begin), to - from, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, found[i].fd,
             static_cast<off_t>(found[i].offset + (from - found[i].begin)));
    }
    s.mapped_bytes += bytes;
    pin_of(handle)->mapped = static_cast<char*>(room);
    *mapping = room;
    return 0;
}

EXPORT int gdr_unmap(gdr*, GdrHandle handle, void* mapping, std::size_t bytes) {
    ++g_counts[kUnmap];
    Guard guard;
    Pin* pin = pin_of(handle);
    if (pin == nullptr || pin->mapped != mapping) return EINVAL;
    munmap(mapping, bytes);
    state().mapped_bytes -= bytes;
    pin->mapped = nullptr;
    return 0;
}

EXPORT int gdr_unpin_buffer(gdr*, GdrHandle handle) {
    ++g_counts[kUnpin];
    Guard guard;
    Pin* pin = pin_of(handle);
    if (pin == nullptr) return EINVAL;
    state().pins.remove_if([pin](const Pin& each) { return &each == pin; });
    return 0;
}

EXPORT int gdr_get_info_v2(gdr*, GdrHandle handle, GdrInfo* info) {
    Guard guard;
    const Pin* pin = pin_of(handle);
    if (pin == nullptr) return EINVAL;
    info->address = pin->begin;
    info->mapped_bytes = pin->bytes;
    info->page_bytes = kPage;
    return 0;
}

EXPORT int gdr_copy_to_mapping(GdrHandle, void* mapping, const void* from, std::size_t bytes) {
    ++g_counts[kWrite];
    const Spend spend(SIMGPU_WINDOW_WRITE, bytes);
    memcpy(mapping, from, bytes);
    return 0;
}

EXPORT int gdr_copy_from_mapping(GdrHandle, void* to, const void* mapping, std::size_t bytes) {
    ++g_counts[kRead];
    const Spend spend(SIMGPU_WINDOW_READ, bytes);
    memcpy(to, mapping, bytes);
    return 0;
}

// --- for tests (simgpu.h) ------------------------------------------------------------------------

EXPORT uint64_t simgpu_gdr_calls(const char* what) {
    if (strcmp(what, "mapped bytes") == 0) {
        Guard guard;
        return state().mapped_bytes;
    }
    for (int i = 0; i < kCounts; ++i)
        if (strcmp(what, kNames[i]) == 0) return g_counts[i].load();
    return UINT64_MAX;
}

EXPORT void simgpu_gdr_settings(const char* text) {
    Guard guard;
    settle(text);
}
