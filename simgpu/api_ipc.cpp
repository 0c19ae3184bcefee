// SPDX-License-Identifier: BSD-3-Clause
// Legacy IPC. A memory handle names the owner's memfd slice; the importer opens it through
// /proc/<pid>/fd and maps it at a device address of its own. Same user and PID namespace needed, as
// in the driver. A handle of this process is refused, one of another run (a simulated "other node")
// too; opening twice gives the same address.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <functional>

#include "entry.hpp"
#include "memory.hpp"

namespace {

using simgpu::Address;
using simgpu::Current;
using simgpu::current_context;
using simgpu::Device;
using simgpu::Driver;
using simgpu::Event;
using simgpu::EventSlot;
using simgpu::Made;
using simgpu::MemoryKind;
using simgpu::Range;
using simgpu::Slice;

constexpr std::uint32_t kMemoryMagic = 0x53474d31;
constexpr std::uint32_t kEventMagic = 0x53474531;

struct MemoryHandle {
    std::uint32_t magic;
    std::int32_t process;
    std::int32_t fd;
    std::int32_t physical_device;
    std::uint64_t offset;
    std::uint64_t slice_bytes;
    std::uint64_t bytes;
    std::uint64_t buffer_id;
    std::uint32_t run;
    std::uint32_t base_offset;
};
static_assert(sizeof(MemoryHandle) <= sizeof(CUipcMemHandle));

struct EventHandle {
    std::uint32_t magic;
    std::uint32_t slot;
    std::uint32_t run;
    std::uint32_t flags;
};

std::uint32_t run_of(const Driver& d) {
    return static_cast<std::uint32_t>(std::hash<std::string>{}(d.page.run_name()));
}

Range* find_import(Driver& d, const MemoryHandle& handle) {
    for (auto& [base, range] : d.memory.all()) {
        if (range.kind == MemoryKind::imported &&
            range.import_key[0] == static_cast<std::uint64_t>(handle.process) &&
            range.import_key[1] == handle.offset && range.import_key[2] == handle.buffer_id) {
            return &range;
        }
    }
    return nullptr;
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
    SIM_ENTER(cuIpcGetMemHandle);
    SIM_TRY(current_context(d).result);
    entry.costs(d.model.calls().ipc_export);
    Range* range = d.memory.find(address);
    if (out == nullptr || range == nullptr || range->kind != MemoryKind::device) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!d.model.machine().ipc) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    range->exported = true;
    const MemoryHandle handle{
        kMemoryMagic,        getpid(),
        range->slice.fd,     range->device->physical,
        range->slice.offset, range->slice.bytes,
        range->bytes,        range->buffer_id,
        run_of(d),           static_cast<std::uint32_t>(range->base - range->block)};
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle in, unsigned flags) {
    SIM_ENTER(cuIpcOpenMemHandle_v2);
    SIM_TRY(simgpu::refuse_during_capture(d));
    const Current current = current_context(d);
    SIM_TRY(current.result);
    MemoryHandle handle{};
    memcpy(&handle, &in, sizeof handle);
    if (address == nullptr || handle.magic != kMemoryMagic ||
        flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (handle.run != run_of(d)) {
        return CUDA_ERROR_INVALID_VALUE;  // another node
    }
    if (handle.process == getpid()) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    Device* device = simgpu::exporters_device(d, handle.physical_device);
    if (device == nullptr) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const bool same = device == current.context->device;
    if (!same && !d.model.machine().peer_access) {
        return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    if (same) {
        entry.costs(d.model.calls().ipc_open);
    } else {
        const bool large = handle.bytes >= gantry::model::kLargeMapping;
        entry.costs(d.model.calls().ipc_open_peer +
                    simgpu::price_of_pair(d, *device, *current.context) +
                    (large ? d.model.calls().ipc_open_large : 0));
    }
    if (Range* open = find_import(d, handle)) {
        ++open->opened;
        *address = open->base;
        return CUDA_SUCCESS;
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle.process, handle.fd);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return CUDA_ERROR_MAP_FAILED;
    }
    const Slice slice{fd, handle.offset, static_cast<std::size_t>(handle.slice_bytes)};
    const Made made = simgpu::map_range(d, *device, MemoryKind::imported, slice,
                                        static_cast<std::size_t>(handle.bytes), handle.base_offset);
    close(fd);
    SIM_TRY(made.result);
    made.range->context = current.context;
    made.range->opened = 1;
    made.range->import_key[0] = static_cast<std::uint64_t>(handle.process);
    made.range->import_key[1] = handle.offset;
    made.range->import_key[2] = handle.buffer_id;
    *address = made.range->base;
    return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    SIM_ENTER(cuIpcCloseMemHandle);
    SIM_TRY(simgpu::refuse_during_capture(d));
    SIM_TRY(current_context(d).result);
    Range* range = d.memory.find(address);
    if (range == nullptr || range->kind != MemoryKind::imported || range->base != address) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    entry.costs(d.model.calls().ipc_close);
    if (--range->opened == 0) {
        d.scheduler.wait_for_all();
        simgpu::release_range(d, *range);
    }
    return CUDA_SUCCESS;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* out, CUevent event) {
    SIM_ENTER(cuIpcGetEventHandle);
    SIM_TRY(simgpu::check_event(d, event));
    const Event& object = *simgpu::object_of(event);
    if (out == nullptr || object.slot == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const EventHandle handle{kEventMagic, d.page.index_of(object.slot), run_of(d), object.flags};
    memset(out, 0, sizeof *out);
    memcpy(out, &handle, sizeof handle);
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle in) {
    SIM_ENTER(cuIpcOpenEventHandle);
    const Current current = current_context(d);
    SIM_TRY(current.result);
    EventHandle handle{};
    memcpy(&handle, &in, sizeof handle);
    EventSlot* slot = handle.magic == kEventMagic && handle.run == run_of(d)
                          ? d.page.event_slot(handle.slot)
                          : nullptr;
    if (event == nullptr || slot == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    slot->references.fetch_add(1);
    auto* object = new Event;
    object->context = current.context;
    object->flags = handle.flags;
    object->slot = slot;
    object->imported = true;
    current.context->events.push_back(object);
    d.live_events.insert(object);
    *event = simgpu::handle_of(object);
    return CUDA_SUCCESS;
}
