// SPDX-License-Identifier: BSD-3-Clause
#include "faults.hpp"

#include <stdlib.h>

#include <atomic>
#include <vector>

#include "driver.hpp"

namespace simgpu {
namespace {

enum class Target { call, operation, event };

struct Fault {
    Target target;
    EntryId entry;
    std::uint64_t n;  // 0: every call
    CUresult result;
    std::uint64_t seen;
    bool armed;  // handed to the scheduler
};

Mutex g_mutex;
std::vector<Fault>& faults() {
    static auto* list = new std::vector<Fault>;
    return *list;
}
std::atomic<bool> g_any{false};
std::atomic<bool> g_no_device{false};

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == separator) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

bool parse(const std::string& text, Fault* fault) {
    const std::vector<std::string> parts = split(text, ':');
    if (parts.size() != 3) {
        return false;
    }
    *fault = {Target::call,
              entry_named(parts[0]),
              strtoull(parts[1].c_str(), nullptr, 10),
              static_cast<CUresult>(strtol(parts[2].c_str(), nullptr, 10)),
              0,
              false};
    if (parts[0] == "operation") {
        fault->target = Target::operation;
    } else if (parts[0] == "event") {
        fault->target = Target::event;
    } else if (fault->entry == EntryId::count) {
        return false;
    }
    return fault->n > 0 || (parts[1] == "*" && fault->target == Target::call);
}

}  // namespace

bool add_faults(const char* text, std::string* complaint) {
    std::vector<Fault> added;
    bool without_device = false;
    for (const std::string& part : split(text, ',')) {
        Fault fault{};
        if (part == "no_device") {
            without_device = true;
        } else if (parse(part, &fault)) {
            added.push_back(fault);
        } else if (!part.empty()) {
            *complaint += "fault '" + part + "' is not NAME:N:RESULT; ";
            return false;
        }
    }
    Guard guard(g_mutex);
    faults().insert(faults().end(), added.begin(), added.end());
    g_any.store(!faults().empty());
    g_no_device.store(g_no_device.load() || without_device);
    return true;
}

void clear_faults() {
    Guard guard(g_mutex);
    faults().clear();
    g_any.store(false);
    g_no_device.store(false);
}

void load_faults_from_environment(std::string* complaint) {
    if (const char* text = getenv("SIMGPU_FAULT")) {
        add_faults(text, complaint);
    }
}

bool no_device_injected() {
    return g_no_device.load();
}
bool any_faults() {
    return g_any.load(std::memory_order_relaxed);
}

CUresult injected_result(EntryId entry) {
    Guard guard(g_mutex);
    for (Fault& fault : faults()) {
        if (fault.target != Target::call || fault.entry != entry) {
            continue;
        }
        ++fault.seen;
        if (fault.n == 0 || fault.seen == fault.n) {
            return fault.result;
        }
    }
    return CUDA_SUCCESS;
}

void arm_scheduler_faults(Driver& d) {
    Guard guard(g_mutex);
    for (Fault& fault : faults()) {
        if (fault.armed || fault.target == Target::call) {
            continue;
        }
        fault.armed = true;
        if (fault.target == Target::operation) {
            d.scheduler.fail_operation(fault.n, fault.result);
        } else {
            d.scheduler.never_complete_event(fault.n);
        }
    }
}

}  // namespace simgpu
