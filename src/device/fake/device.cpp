// SPDX-License-Identifier: BSD-3-Clause
#include "device/fake/device.hpp"

#include "device/machine_facts.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace gantry::device::fake {
std::uint64_t Counts::all_copies() const {
    return std::accumulate(std::begin(copies), std::end(copies), host_copies);
}

FakeDevice::FakeDevice(model::Processor& processor, Gpus& gpus, int rank, int node)
    : Device("fake"),
      processor_(processor),
      gpus_(gpus),
      rank_(rank),
      first_gpu_(node * gpus.per_node()),
      small_{FusedQueue(device::gpu_facts(gpus.machine()), Sizes::small), 0},
      large_{FusedQueue(device::gpu_facts(gpus.machine()), Sizes::large), kBatches} {
    for (int gpu = 0; gpu < gpus.per_node(); ++gpu) {
        facts_.push_back(device::gpu_facts(gpus.machine()));
        facts_.back().uuid = Gpus::uuid(first_gpu_ + gpu);
        facts_.back().mps = facts_.back().queue_turn == 0;
    }
}

// --- what a program does with the driver --------------------------------------------------------

void* FakeDevice::allocate(int gpu, Bytes bytes, MemoryKind kind, IpcKind ipc) {
    active_ = true;
    auto allocation = gpus_.allocate(first_gpu_ + gpu, bytes, kind, ipc);
    const std::uintptr_t base = allocation->base();
    mappings_.emplace(base, Mapping{std::move(allocation), nullptr, 0});
    return reinterpret_cast<void*>(base);
}

void FakeDevice::free(void* address) {
    const auto found = mappings_.find(reinterpret_cast<std::uintptr_t>(address));
    GANTRY_ASSERT(found != mappings_.end() && found->second.opened == nullptr);
    Allocation& allocation = *found->second.allocation;
    // Importers keep a view of poisoned bytes, as on the simulated GPU; the address is free.
    std::memset(allocation.bytes.get(), 0xDB, allocation.size);
    allocation.freed = true;
    allocation.guard.reset();
    mappings_.erase(found);
}

std::byte* FakeDevice::behind(const void* address, Bytes bytes) {
    const Result<Place> where = place(address, bytes);
    GANTRY_ASSERT(where.ok());
    return where.value().bytes;
}

// --- pointers -----------------------------------------------------------------------------------

FakeDevice::Mapping* FakeDevice::mapping_of(const void* address, std::uintptr_t* base) {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    auto found = mappings_.upper_bound(value);
    if (found == mappings_.begin()) return nullptr;
    --found;
    if (value - found->first >= std::max<Bytes>(found->second.allocation->size, 1)) return nullptr;
    *base = found->first;
    return &found->second;
}

Result<FakeDevice::Place> FakeDevice::place(const void* address, Bytes bytes) {
    std::uintptr_t base = 0;
    const Mapping* mapping = mapping_of(address, &base);
    if (mapping == nullptr) {
        const MemoryKind kind = pinned(address, bytes) ? MemoryKind::pinned : MemoryKind::host;
        return Place{static_cast<std::byte*>(const_cast<void*>(address)), kind, -1};
    }
    const Allocation& allocation = *mapping->allocation;
    const Bytes offset = reinterpret_cast<std::uintptr_t>(address) - base;
    if (offset + bytes > allocation.size)
        return failure(MPI_ERR_BUFFER, "{} bytes at {} leave their allocation of {} bytes", bytes,
                       address, allocation.size);
    return Place{allocation.bytes.get() + offset, allocation.kind, allocation.gpu};
}

bool FakeDevice::pinned(const void* address, Bytes bytes) const {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    auto found = pins_.upper_bound(value);
    if (found == pins_.begin()) return false;
    --found;
    return value - found->first + bytes <= found->second;
}

Result<Location> FakeDevice::classify(const void* address, Bytes bytes) {
    if (!active_) return Location{};
    ++counts_.classified;
    const model::CallCost& calls = gpus_.machine().gpu.calls;
    Location location;
    std::uintptr_t base = 0;
    const Mapping* mapping = mapping_of(address, &base);
    processor_.spend(mapping != nullptr ? calls.classify_device : calls.classify_host);
    Result<Place> where = place(address, bytes);
    if (!where.ok()) return where.status();
    location.kind = where.value().kind;
    if (mapping == nullptr) return location;
    const Allocation& allocation = *mapping->allocation;
    location.gpu = allocation.gpu - first_gpu_;
    location.ipc = allocation.ipc;
    location.buffer_id = allocation.id;
    location.base = base;
    location.size = allocation.size;
    return location;
}

// --- BAR mappings -------------------------------------------------------------------------------

bool FakeDevice::has_bar_mapping(const Location& location, const void*, Bytes bytes) {
    if (!has_gdrcopy || !active_ || bytes == 0 || !location.on_device())
        return has_gdrcopy && active_ && bytes == 0;
    if (bar_mappings_.contains(location.buffer_id)) return true;
    if (!bar_uses_.repays({location.buffer_id, 0}, gpu_facts(location.gpu)) || in_flight_ > 0)
        return false;
    processor_.spend(gpus_.machine().gpu.window.open);
    if (faults.refuse_bar) {
        bar_uses_.refuse({location.buffer_id, 0});
        return false;
    }
    ++counts_.bar_opens;
    bar_mappings_.insert(location.buffer_id);
    return true;
}

Status FakeDevice::copy_by_bar(const Copy& copy) {
    const std::shared_ptr<Allocation> allocation = gpus_.find(copy.allocation);
    if (allocation == nullptr || allocation->freed) bar_mappings_.erase(copy.allocation);
    if (!bar_mappings_.contains(copy.allocation))
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "no fake BAR mapping of buffer {}",
                       copy.allocation);
    Result<Place> from = place(copy.source, copy.bytes);
    GANTRY_TRY(from.status());
    Result<Place> to = place(copy.destination, copy.bytes);
    GANTRY_TRY(to.status());
    const bool reads = from->gpu >= 0;
    processor_.spend(reads ? model::window_read_time(gpus_.machine().gpu, copy.bytes)
                           : model::window_write_time(gpus_.machine().gpu, copy.bytes));
    ++(reads ? counts_.bar_reads : counts_.bar_writes);
    if (!reads) gpus_.timeline().note(static_cast<std::uint64_t>(rank_), copy.bytes);
    std::memcpy(to->bytes, from->bytes, copy.bytes);
    return success();
}

// --- host memory and other processes ------------------------------------------------------------

Status FakeDevice::pin(void* address, Bytes bytes) {
    if (faults.refuse_pin)
        return failure(MPI_ERR_NO_MEM, "fake pin of {} bytes: CUDA_ERROR_OUT_OF_MEMORY", bytes);
    ++counts_.pins;
    processor_.spend(gpus_.machine().gpu.calls.register_host);
    pins_[reinterpret_cast<std::uintptr_t>(address)] = bytes;
    return success();
}

Result<IpcHandle> FakeDevice::export_memory(const Location& location) {
    const std::shared_ptr<Allocation> allocation = gpus_.find(location.buffer_id);
    if (faults.refuse_ipc_export || allocation == nullptr || allocation->ipc == IpcKind::none)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "fake export of buffer {}: CUDA_ERROR_INVALID_VALUE", location.buffer_id);
    ++counts_.exports;
    processor_.spend(gpus_.machine().gpu.calls.ipc_export);
    IpcHandle handle;
    handle.kind = allocation->ipc;
    handle.buffer_id = allocation->id;
    handle.base = location.base;
    handle.size = allocation->size;
    handle.gpu = Gpus::uuid(allocation->gpu);
    handle.origin = 1;  // it is named; one world counts allocations once
    return handle;
}

Result<void*> FakeDevice::open_memory(const IpcHandle& handle, int gpu, Opening opening) {
    if (const auto open = opened_.find(handle.buffer_id); open != opened_.end()) {
        ++mappings_.at(open->second).users;
        if (opening == Opening::known_only) ++counts_.opens_again;
        return reinterpret_cast<void*>(open->second);
    }
    if (opening == Opening::known_only) return nullptr;
    const std::shared_ptr<Allocation> allocation = gpus_.find(handle.buffer_id);
    if (faults.refuse_ipc_open || allocation == nullptr || allocation->freed ||
        access(handle, gpu) == Access::no_descriptor) {
        ++counts_.refused_opens;
        return failure(MPI_ERR_OTHER,
                       "fake opening of buffer {} of a peer: CUDA_ERROR_INVALID_HANDLE",
                       handle.buffer_id);
    }
    ++(opening == Opening::anchor ? counts_.anchors : counts_.opens);
    counts_.opens_beside_work += pending() ? 1 : 0;
    active_ = true;
    const model::CallCost& calls = gpus_.machine().gpu.calls;
    const bool other_gpu = allocation->gpu != first_gpu_ + gpu;
    Nanoseconds price = handle.kind == IpcKind::vmm ? calls.vmm_open
                        : handle.kind == IpcKind::pool
                            ? (other_gpu ? calls.pool_open_peer : calls.pool_open)
                            : (other_gpu ? calls.ipc_open_peer : calls.ipc_open);
    if (opens_first(handle.kind, gpu, handle.gpu))
        price += calls.ipc_pair + (handle.kind == IpcKind::pool ? calls.pool_first : 0);
    if (other_gpu && handle.size >= model::kLargeMapping) price += calls.ipc_open_large;
    had_pool_ = had_pool_ || (other_gpu && handle.kind == IpcKind::pool);
    processor_.spend(price);
    auto range = std::make_unique<GuardedRange>(allocation->size);
    const std::uintptr_t base = range->base();
    mappings_.emplace(base, Mapping{allocation, std::move(range), 1});
    opened_[handle.buffer_id] = base;
    return reinterpret_cast<void*>(base);
}

bool FakeDevice::opens_first(IpcKind kind, int gpu, const Uuid& other) {
    if (gpu_of(other) == gpu) return false;
    if (kind == IpcKind::pool && !had_pool_) return true;
    return std::none_of(opened_.begin(), opened_.end(), [&](const auto& open) {
        return Gpus::uuid(mappings_.at(open.second).allocation->gpu) == other;
    });
}

// The mapping stays in the cache for the next message.
void FakeDevice::close_memory(const IpcHandle& handle, int) {
    const auto open = opened_.find(handle.buffer_id);
    if (open == opened_.end() || mappings_.at(open->second).users == 0) {
        GANTRY_ASSERT(losses_ > 0);  // it went with its context
        return;
    }
    --mappings_.at(open->second).users;
}

void FakeDevice::lose_mappings() {
    ++losses_;
    for (const auto& [id, base] : opened_)
        mappings_.erase(base);
    opened_.clear();
}

Access FakeDevice::access(const IpcHandle& handle, int) {
    if (opened_.contains(handle.buffer_id)) return Access::open;
    const bool needs = handle.kind == IpcKind::vmm || handle.kind == IpcKind::pool;
    return needs && !gpus_.has_descriptor(handle.buffer_id, descriptor_inbox())
               ? Access::no_descriptor
               : Access::closed;
}

Status FakeDevice::send_descriptor(const IpcHandle& handle, std::uint32_t inbox) {
    ++counts_.descriptors;
    if (faults.refuse_descriptor)
        return failure(MPI_ERR_OTHER, "fake export of a descriptor: CUDA_ERROR_NOT_SUPPORTED");
    gpus_.give_descriptor(handle.buffer_id, inbox);
    return success();
}

void FakeDevice::forget_memory(std::uint64_t buffer_id, const Uuid&) {
    const auto open = opened_.find(buffer_id);
    if (open == opened_.end()) return;
    GANTRY_ASSERT(mappings_.at(open->second).users == 0);
    ++counts_.closes;
    mappings_.erase(open->second);
    opened_.erase(open);
}

bool FakeDevice::still_valid(const IpcHandle& handle) {
    ++counts_.rechecks;
    const std::shared_ptr<Allocation> allocation = gpus_.find(handle.buffer_id);
    return allocation != nullptr && !allocation->freed;
}

void* FakeDevice::borrow(const void* like, Bytes bytes) {
    Result<Place> home = place(like, 1);
    if (!home.ok() || home->kind != MemoryKind::device) return nullptr;
    const int gpu = home->gpu - first_gpu_;
    for (auto& [address, each] : scratch_)
        if (!each.lent && each.gpu == gpu && each.bytes >= bytes) {
            each.lent = true;
            return address;
        }
    void* const fresh = allocate(gpu, bytes);
    scratch_[fresh] = {gpu, bytes, true};
    return fresh;
}

void FakeDevice::give_back(void* borrowed) {
    const auto found = scratch_.find(borrowed);
    if (found != scratch_.end()) found->second.lent = false;
}

void FakeDevice::shut_down() {
    for (const auto& [address, each] : scratch_)
        free(address);
    scratch_.clear();
    for (const auto& [id, base] : opened_)
        mappings_.erase(base);
    opened_.clear();
    pins_.clear();
}

}  // namespace gantry::device::fake
