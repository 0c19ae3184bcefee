// SPDX-License-Identifier: BSD-3-Clause
#include "device/fake/device.hpp"

#include "device/kernels/copy_many.hpp"
#include "device/machine_facts.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace gantry::device::fake {
namespace {

using model::Operation;

bool due(int& countdown) {
    return countdown > 0 && --countdown == 0;
}

}  // namespace

std::uint64_t Counts::all_copies() const {
    return std::accumulate(std::begin(copies), std::end(copies), host_copies);
}

FakeDevice::FakeDevice(model::Processor& processor, Gpus& gpus, int rank, int node)
    : processor_(processor),
      gpus_(gpus),
      rank_(rank),
      first_gpu_(node * gpus.per_node()),
      waiting_(device::gpu_facts(gpus.machine())) {
    for (int gpu = 0; gpu < gpus.per_node(); ++gpu) {
        facts_.push_back(device::gpu_facts(gpus.machine()));
        facts_.back().uuid = Gpus::uuid(first_gpu_ + gpu);
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
    // Importers keep a view of poisoned bytes, as on the simulated GPU.
    std::memset(allocation.bytes.get(), 0xDB, allocation.size);
    allocation.freed = true;
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

int FakeDevice::gpu_of(const Uuid& uuid) {
    for (std::size_t gpu = 0; gpu < facts_.size(); ++gpu)
        if (facts_[gpu].uuid == uuid) return static_cast<int>(gpu);
    return -1;
}

// --- copies -------------------------------------------------------------------------------------

void FakeDevice::copy(const Copy& copy, Completion& done) {
    ++in_flight_;
    if (copy.engine != Engine::fused) return copy_now(copy, done, -1);
    waiting_.push(copy, done);
    if (const int batch = free_batch();
        batch >= 0 && waiting_.goes_at_once(flying(), Launches::possible))
        start_waiting(batch);
}

void FakeDevice::start_waiting(Company more) {
    const bool now = waiting_.goes_after_all(flying(), more);
    if (const int batch = free_batch(); now && batch >= 0) start_waiting(batch);
}

void FakeDevice::start_waiting(int batch) {
    while (flying_[batch] == 0 && !waiting_.empty()) {
        std::vector<FusedQueue::Item> together;
        waiting_.copy_first(std::min<std::size_t>(waiting_.size(), kernels::kCopiesPerLaunch),
                            together);
        waiting_.drop_first(together.size());
        flying_[batch] = static_cast<int>(together.size());
        if (together.size() == 1)
            copy_now(together.front().copy, *together.front().done, batch);
        else
            launch(std::move(together), batch);
    }
}

void FakeDevice::copy_now(const Copy& copy, Completion& done, int batch) {
    const bool flag = batch >= 0 || copy.notice == Notice::flag;
    processor_.spend(gpus_.machine().gpu.calls.copy);
    const Rows rows = copy.rows != nullptr ? *copy.rows : Rows{1, copy.bytes, copy.bytes};
    const Bytes width = copy.bytes / rows.count;
    const Result<Place> from = place(copy.source, (rows.count - 1) * rows.source_pitch + width);
    const Result<Place> to =
        place(copy.destination, (rows.count - 1) * rows.destination_pitch + width);
    if (!from.ok() || !to.ok()) {
        finished_.push_back({&done, (from.ok() ? to : from).status().with("fake copy"), batch});
        return;
    }
    const Place source = from.value();
    const Place sink = to.value();
    const bool from_device = source.kind == MemoryKind::device;
    const bool to_device = sink.kind == MemoryKind::device;

    model::Work work{Operation::d2d, copy.bytes, rows.count, 0};
    if (from_device && to_device) {
        const bool gets = sink.gpu == first_gpu_ + copy.gpu;
        work.operation = source.gpu == sink.gpu ? Operation::d2d
                         : gets                 ? Operation::peer_get
                                                : Operation::peer;
    } else if (from_device) {
        work.operation = sink.kind == MemoryKind::host ? Operation::pageable_d2h : Operation::d2h;
    } else if (copy.engine == Engine::h2d_2d) {
        work.operation = Operation::h2d_2d;
        work.rows = 2;
    } else {
        work.operation = source.kind == MemoryKind::host ? Operation::pageable_h2d : Operation::h2d;
    }
    model::Interval interval;
    if (!from_device && !to_device) {  // host to host: the calling thread copies
        ++counts_.host_copies;
        processor_.spend(gpus_.machine().host.memcpy.time(copy.bytes));
        interval = {processor_.now(), processor_.now()};
    } else {
        ++counts_.copies[static_cast<int>(work.operation)];
        counts_.bytes[static_cast<int>(work.operation)] += copy.bytes;
        interval = gpus_.reserve(first_gpu_ + copy.gpu, work, rank_, processor_.now());
    }
    if (due(faults.hang_copy)) return never_end_.push_back(&done);
    const Status status = fault_of(copy);
    gpus_.timeline().at(
        interval.end, [this, source, sink, width, rows, &done, status, batch, flag] {
            if (dead_) return never_end_.push_back(&done);
            gpus_.timeline().note(static_cast<std::uint64_t>(rank_), width * rows.count);
            for (Bytes row = 0; status.ok() && width > 0 && row < rows.count; ++row)
                std::memmove(sink.bytes + row * rows.destination_pitch,
                             source.bytes + row * rows.source_pitch, width);
            finished_.push_back({&done, status, batch, flag});
        });
}

Status FakeDevice::fault_of(const Copy& copy) {
    if (!due(faults.fail_copy) && !faults.fail_every_copy) return success();
    return failure(
        MPI_ERR_OTHER,
        "fake copy of {} bytes on GPU {}: CUDA_ERROR_ILLEGAL_ADDRESS (a fault set by the test)",
        copy.bytes, copy.gpu);
}

void FakeDevice::launch(std::vector<FusedQueue::Item> together, int batch) {
    ++counts_.launches;
    processor_.spend(gpus_.machine().gpu.calls.launch);
    Bytes bytes = 0;
    std::vector<Status> faults_of;
    for (const FusedQueue::Item& each : together) {
        bytes += each.copy.bytes;
        faults_of.push_back(fault_of(each.copy));
    }
    const model::Gpu& gpu = gpus_.machine().gpu;
    const int on = first_gpu_ + together.front().copy.gpu;
    model::Interval interval = gpus_.reserve(
        on, {Operation::kernel, bytes, 1, 256 * together.size()}, rank_, processor_.now());
    interval.end += gpu.peer.rate.time(bytes);
    gpus_.timeline().at(interval.end, [this, together = std::move(together),
                                       faults_of = std::move(faults_of), batch] {
        for (std::size_t i = 0; i < together.size(); ++i) {
            const FusedQueue::Item& each = together[i];
            if (dead_) {
                never_end_.push_back(each.done);
                continue;
            }
            const Result<Place> from = place(each.copy.source, each.copy.bytes);
            const Result<Place> to = place(each.copy.destination, each.copy.bytes);
            Status status = from.ok() ? to.status() : from.status();
            if (from.ok() && to.ok()) {
                gpus_.timeline().note(static_cast<std::uint64_t>(rank_), each.copy.bytes);
                std::memmove(to.value().bytes, from.value().bytes, each.copy.bytes);
                status = faults_of[i];
            }
            finished_.push_back({each.done, status, batch, true});
        }
    });
}

int FakeDevice::progress() {
    int completed = 0;
    while (!finished_.empty()) {
        const Finished finished = finished_.front();
        finished_.pop_front();
        --in_flight_;
        ++completed;
        if (finished.batch >= 0) --flying_[finished.batch];
        processor_.spend(finished.flag ? gpus_.machine().host.flag
                                       : gpus_.machine().gpu.calls.event_query);
        finished.done->complete(finished.status);
    }
    const bool now = waiting_.goes_now(flying(), Launches::possible);
    if (const int batch = free_batch(); now && batch >= 0) start_waiting(batch);
    return completed;
}

// --- windows ------------------------------------------------------------------------------------

bool FakeDevice::window(const Location& location, const void*, Bytes) {
    if (!has_windows() || !location.on_device()) return false;
    if (windows_open_.contains(location.buffer_id)) return true;
    if (!window_uses_.repays({location.buffer_id, 0}, gpu_facts(location.gpu)) || in_flight_ > 0)
        return false;
    processor_.spend(gpus_.machine().gpu.window.open);
    if (faults.refuse_window) {
        window_uses_.refuse({location.buffer_id, 0});
        return false;
    }
    ++counts_.window_opens;
    windows_open_.insert(location.buffer_id);
    return true;
}

Result<FakeDevice::Place> FakeDevice::in_window(const Location& location, const void* address,
                                                Bytes bytes) {
    const std::shared_ptr<Allocation> allocation = gpus_.find(location.buffer_id);
    if (allocation == nullptr || allocation->freed) windows_open_.erase(location.buffer_id);
    if (!windows_open_.contains(location.buffer_id))
        return failure(MPI_ERR_UNSUPPORTED_OPERATION, "fake window of buffer {}: none is open",
                       location.buffer_id);
    return place(address, bytes);
}

Status FakeDevice::read_window(const Location& location, const void* address, void* to,
                               Bytes bytes) {
    const Result<Place> from = in_window(location, address, bytes);
    GANTRY_TRY(from.status());
    processor_.spend(model::window_read_time(gpus_.machine().gpu, bytes));
    ++counts_.window_reads;
    std::memcpy(to, from.value().bytes, bytes);
    return success();
}

Status FakeDevice::write_window(const Location& location, void* address, const void* from,
                                Bytes bytes) {
    const Result<Place> to = in_window(location, address, bytes);
    GANTRY_TRY(to.status());
    processor_.spend(model::window_write_time(gpus_.machine().gpu, bytes));
    ++counts_.window_writes;
    gpus_.timeline().note(static_cast<std::uint64_t>(rank_), bytes);
    std::memcpy(to.value().bytes, from, bytes);
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

void FakeDevice::unpin(void* address) {
    pins_.erase(reinterpret_cast<std::uintptr_t>(address));
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
    return handle;
}

Result<void*> FakeDevice::open_memory(const IpcHandle& handle, int gpu) {
    const auto open = opened_.find(handle.buffer_id);
    if (open != opened_.end()) {
        ++mappings_.at(open->second).users;
        return reinterpret_cast<void*>(open->second);
    }
    const std::shared_ptr<Allocation> allocation = gpus_.find(handle.buffer_id);
    if (faults.refuse_ipc_open || allocation == nullptr || allocation->freed ||
        access(handle, gpu) == Access::no_descriptor)
        return failure(MPI_ERR_OTHER,
                       "fake opening of buffer {} of a peer: CUDA_ERROR_INVALID_HANDLE",
                       handle.buffer_id);
    ++counts_.opens;
    active_ = true;
    const model::CallCost& calls = gpus_.machine().gpu.calls;
    const bool other_gpu = allocation->gpu != first_gpu_ + gpu;
    processor_.spend(handle.kind == IpcKind::vmm ? calls.vmm_open
                     : handle.kind == IpcKind::pool
                         ? (other_gpu ? calls.pool_open_peer : calls.pool_open)
                         : (other_gpu ? calls.ipc_open_peer : calls.ipc_open));
    auto range = std::make_unique<GuardedRange>(allocation->size);
    const std::uintptr_t base = range->base();
    mappings_.emplace(base, Mapping{allocation, std::move(range), 1});
    opened_[handle.buffer_id] = base;
    return reinterpret_cast<void*>(base);
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
    const std::shared_ptr<Allocation> allocation = gpus_.find(handle.buffer_id);
    return allocation != nullptr && !allocation->freed;
}

void FakeDevice::shut_down() {
    for (const auto& [id, base] : opened_)
        mappings_.erase(base);
    opened_.clear();
    pins_.clear();
}

}  // namespace gantry::device::fake
