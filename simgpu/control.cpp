// SPDX-License-Identifier: BSD-3-Clause
// The test interface of simgpu.h, and what happens at exit: counters, trace, leak report, end of
// service.
#include "simgpu.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "entry.hpp"
#include "faults.hpp"

namespace simgpu {
namespace {

const char* kind_name(OpKind kind) {
    constexpr const char* kKinds[] = {"copy",        "fill",       "kernel", "host_function",
                                      "value_write", "value_wait", "event",  "marker"};
    return kKinds[static_cast<int>(kind)];
}

// "%p" in a file name is the process id: ranks write files of their own.
FILE* open_report(const std::string& name) {
    std::string path = name;
    if (const std::size_t at = path.find("%p"); at != std::string::npos) {
        path.replace(at, 2, std::to_string(getpid()));
    }
    return fopen(path.c_str(), "w");
}

void write_counts(const Driver& d) {
    FILE* out = d.settings.counts_file.empty() ? nullptr : open_report(d.settings.counts_file);
    if (out == nullptr) {
        return;
    }
    for (int index = 0; index < kEntries; ++index) {
        if (const std::uint64_t calls = g_calls[index].load()) {
            fprintf(out, "%s %llu\n", name_of(static_cast<EntryId>(index)),
                    static_cast<unsigned long long>(calls));
        }
    }
    fclose(out);
}

void write_trace(const Driver& d) {
    FILE* out = d.settings.trace_file.empty() ? nullptr : open_report(d.settings.trace_file);
    if (out == nullptr) {
        return;
    }
    fprintf(out, "# operation device stream bytes enqueued start end (ns)\n");
    for (const Scheduler::Done& op : d.scheduler.history()) {
        fprintf(out, "%s %d %llu %zu %lld %lld %lld\n", kind_name(op.kind), op.device,
                static_cast<unsigned long long>(op.stream), op.bytes,
                static_cast<long long>(op.enqueued), static_cast<long long>(op.start),
                static_cast<long long>(op.end));
    }
    fclose(out);
}

simgpu_census take_census(const Driver& d) {
    simgpu_census census{};
    for (const auto& [base, range] : d.memory.all()) {
        if (range.kind == MemoryKind::imported) {
            ++census.imported_ranges;
        } else if (range.on_device()) {
            ++census.device_ranges;
            census.device_bytes += range.bytes;
        } else {
            ++census.host_ranges;
        }
    }
    census.streams = d.live_streams.size();
    census.events = d.live_events.size();
    return census;
}

void report_leaks(const Driver& d) {
    const simgpu_census census = take_census(d);
    if (d.settings.report_leaks &&
        (census.device_ranges + census.host_ranges + census.imported_ranges) != 0) {
        fprintf(stderr,
                "simgpu: process %d leaves %zu device ranges (%zu bytes), %zu host ranges, %zu "
                "imported ranges\n",
                getpid(), census.device_ranges, census.device_bytes, census.host_ranges,
                census.imported_ranges);
    }
}

__attribute__((destructor)) void end_of_service() {
    Driver* d = driver();
    if (d == nullptr || phase() != Phase::ready) {
        return;  // never started, or a forked child
    }
    set_phase(Phase::torn_down);
    d->page.leave();
    if (!d->mutex.try_lock()) {
        return;  // a thread is inside: perhaps this one, exiting from a signal handler
    }
    report_leaks(*d);
    write_counts(*d);
    write_trace(*d);
    d->scheduler.stop();
    d->mutex.unlock();
}

}  // namespace
}  // namespace simgpu

using simgpu::driver;
using simgpu::EntryId;
using simgpu::g_calls;
using simgpu::Guard;
using simgpu::kEntries;

SIMGPU_EXPORT uint64_t simgpu_calls(const char* symbol) {
    if (strcmp(symbol, "*") == 0) {
        uint64_t total = 0;
        for (const auto& calls : g_calls) {
            total += calls.load(std::memory_order_relaxed);
        }
        return total;
    }
    const EntryId entry = simgpu::entry_named(symbol);
    return entry == EntryId::count
               ? UINT64_MAX
               : g_calls[static_cast<int>(entry)].load(std::memory_order_relaxed);
}

SIMGPU_EXPORT void simgpu_reset_calls(void) {
    for (auto& calls : g_calls) {
        calls.store(0, std::memory_order_relaxed);
    }
}

SIMGPU_EXPORT int64_t simgpu_now(void) {
    return simgpu::clock_now();
}

SIMGPU_EXPORT int simgpu_fault(const char* text) {
    if (text == nullptr) {
        simgpu::clear_faults();
        return 0;
    }
    std::string complaint;
    if (!simgpu::add_faults(text, &complaint)) {
        fprintf(stderr, "simgpu: %s\n", complaint.c_str());
        return -1;
    }
    if (simgpu::Driver* d = driver()) {
        Guard guard(d->mutex);
        simgpu::arm_scheduler_faults(*d);
    }
    return 0;
}

SIMGPU_EXPORT size_t simgpu_operations(simgpu_operation* out, size_t capacity) {
    simgpu::Driver* d = driver();
    if (d == nullptr) {
        return 0;
    }
    Guard guard(d->mutex);
    const auto& history = d->scheduler.history();
    const size_t count = std::min(capacity, history.size());
    for (size_t index = 0; index < count; ++index) {
        const auto& op = history[index];
        out[index] = {static_cast<int>(op.kind),
                      op.device,
                      op.stream,
                      op.bytes,
                      op.enqueued,
                      op.start,
                      op.end};
    }
    return history.size();
}

SIMGPU_EXPORT void simgpu_clear_operations(void) {
    if (simgpu::Driver* d = driver()) {
        Guard guard(d->mutex);
        d->scheduler.clear_history();
    }
}

SIMGPU_EXPORT void simgpu_take_census(simgpu_census* out) {
    *out = {};
    simgpu::Driver* d = driver();
    if (d == nullptr) {
        return;
    }
    Guard guard(d->mutex);
    *out = simgpu::take_census(*d);
}

SIMGPU_EXPORT size_t simgpu_find_pages(uint64_t begin, size_t bytes, simgpu_pages* out,
                                       size_t capacity) {
    simgpu::Driver* d = driver();
    if (d == nullptr) {
        return 0;
    }
    Guard guard(d->mutex);
    size_t found = 0;
    for (const auto& [base, range] : d->memory.all()) {
        const bool inside = range.block < begin + bytes && begin < range.block + range.block_bytes;
        if (!inside) {
            continue;
        }
        if (range.kind != simgpu::MemoryKind::device) {
            return 0;
        }
        if (found < capacity) {
            out[found] = {range.block, range.block_bytes, range.slice.fd, range.slice.offset};
        }
        ++found;
    }
    return found;
}

SIMGPU_EXPORT int64_t simgpu_window_time(int what, size_t bytes) {
    const simgpu::Driver* d = driver();
    if (d == nullptr) {
        return 0;
    }
    const gantry::model::Gpu& gpu = d->model.machine().gpu;
    switch (what) {
        case SIMGPU_WINDOW_OPEN: return d->model.scaled(gpu.window.open);
        case SIMGPU_WINDOW_READ:
            return d->model.scaled(gantry::model::window_read_time(gpu, bytes));
        case SIMGPU_WINDOW_WRITE:
            return d->model.scaled(gantry::model::window_write_time(gpu, bytes));
        default: return 0;
    }
}

SIMGPU_EXPORT void simgpu_on_free(void (*callback)(uint64_t begin, size_t bytes)) {
    if (simgpu::Driver* d = driver()) {
        Guard guard(d->mutex);
        d->on_free = callback;
    }
}

SIMGPU_EXPORT void* simgpu_peek(uint64_t device_address) {
    simgpu::Driver* d = driver();
    if (d == nullptr) {
        return nullptr;
    }
    Guard guard(d->mutex);
    const simgpu::Range* range = d->memory.find(device_address);
    return range != nullptr && range->on_device() ? d->arena.alias(device_address) : nullptr;
}
