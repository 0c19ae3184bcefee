// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/cuda_device.hpp"

#include "base/log.hpp"
#include "base/process_state.hpp"
#include "device/cuda/copies.hpp"
#include "device/cuda/expected_gpu.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

namespace gantry::device::cuda {

namespace {

std::size_t limit(std::int64_t value) {
    return value > 0 ? static_cast<std::size_t>(value) : 0;
}

}  // namespace

CudaDevice::CudaDevice(const config::Config& config)
    : Device("cuda"),
      settings_{.kernels = config.kernels,
                .flags = config.flags,
                .idle_timeout = config.idle_timeout,
                .resident = &resident_},
      gdrcopy_(config.gdrcopy != "off"),
      owner_(getpid()),
      driver_(config.cuda_library),
      gpus_(driver_, config.machine, config.kernels && config.idle_timeout > 0),
      query_(driver_),
      pointers_(query_, &losses_),
      watch_(driver_),
      pins_(driver_),
      mappings_(driver_, limit(config.ipc_cache_entries), config.ipc_cache_bytes, losses_),
      bar_mappings_(query_, {limit(config.gdrcopy_mappings), config.gdrcopy_bytes}),
      exports_(driver_),
      scratch_(driver_, config.device_scratch) {
    driver_use_ = &driver_.calls();
    // A driver that never comes looks like a program without a GPU: its device pointers would crash.
    if (const std::string& file = config.cuda_library;
        file.find('/') != std::string::npos && ::access(file.c_str(), R_OK) != 0)
        log::warn("cuda: GANTRY_CUDA_LIBRARY: {}: {}; device memory will be taken for host memory",
                  file, std::strerror(errno));
}

CudaDevice::~CudaDevice() {
    shut_down();
}

// --- facts -------------------------------------------------------------------------------------

bool CudaDevice::active() {
    return driver_.ready();
}

std::span<const GpuFacts> CudaDevice::gpus() {
    gpus_.fill();
    return gpus_.all_facts();
}

RankGpu CudaDevice::gpu_of_rank(int local_rank) {
    if (!driver_.ready()) {
        const bool of_slurm = config::environment("SLURM_STEP_ID").has_value();
        return {
            expected_gpu("/proc", config::environment("CUDA_VISIBLE_DEVICES"),
                         of_slurm ? Numbers::of_what_is_left : Numbers::of_the_machine, local_rank),
            false};
    }
    CUcontext current = nullptr;
    CUdevice device = -1;
    int count = 0;
    driver_.call(driver_.cu.cuCtxGetCurrent, &current);
    driver_.call(driver_.cu.cuDeviceGetCount, &count);
    if (count < 1) return {};
    if (current == nullptr || driver_.call(driver_.cu.cuCtxGetDevice, &device) != CUDA_SUCCESS) {
        current = nullptr;
        driver_.call(driver_.cu.cuDeviceGet, &device, std::max(local_rank, 0) % count);
    }
    char address[32] = {};
    if (driver_.call(driver_.cu.cuDeviceGetPCIBusId, address, static_cast<int>(sizeof address),
                     device) != CUDA_SUCCESS)
        return {};
    return {address, current != nullptr || count == 1};
}

bool CudaDevice::reaches(int gpu, const Uuid& other) {
    gpus_.fill();
    const int seen = gpu_of(other);
    return seen >= 0 ? gpus_.can_access_peer(gpu, seen) : !mappings_.is_kept_away(gpu, other);
}

bool CudaDevice::is_kept_away(int gpu, const Uuid& other) {
    return mappings_.is_kept_away(gpu, other);
}

// --- pointers ----------------------------------------------------------------------------------

Result<Location> CudaDevice::classify(const void* address, Bytes bytes) {
    if (bytes > 0 && pointers_.in_the_last(address, bytes) && driver_.ready()) {
        if (const Allocation* same = pointers_.confirm_last(address)) {
            note_use_of(*same);
            return same->location;
        }
    }
    if (pointers_.surely_host(address, bytes) || !driver_.ready()) return Location{};
    const std::uint64_t before = query_.first_uses();
    Result<Location> location = pointers_.classify(address, bytes);
    if (!location.ok() || !location->on_device()) return location;
    gpus_.fill();
    drop_dead_contexts();
    // New memory where a peer's was mapped: a primary context that was reset is found out by that.
    if (query_.first_uses() != before) {
        if (const IpcCache::Mapping* gone = mappings_.replaced_by(*location)) {
            drop_context(gone->context.handle);
            return classify(address, bytes);
        }
    }
    const Allocation* allocation = pointers_.known(address);
    if (allocation != nullptr) note_use_of(*allocation);
    return location;
}

void CudaDevice::note_use_of(const Allocation& allocation) {
    if (allocation.context == 0 || !allocation.location.on_device()) return;
    const auto context = reinterpret_cast<CUcontext>(allocation.context);
    watch_.saw(context, allocation.location.gpu);
    gpus_.prefer_context(allocation.location.gpu, context);
}

// --- contexts ----------------------------------------------------------------------------------

Result<Context> CudaDevice::working_context(int gpu) {
    Result<CUcontext> handle = gpus_.context(gpu);
    if (!handle.ok()) return std::move(handle).status();
    watch_.saw(*handle, gpu);
    return Context{*handle, context_id(driver_, *handle), gpu};
}

Result<Streams*> CudaDevice::streams_in(CUcontext context, int gpu) {
    if (context == nullptr) {
        Result<CUcontext> usual = gpus_.context(gpu);
        if (!usual.ok()) return std::move(usual).status();
        context = *usual;
    }
    watch_.saw(context, gpu);
    for (const auto& streams : streams_)
        if (streams->context().handle == context) return streams.get();
    const Context fresh{context, context_id(driver_, context), gpu};
    std::unique_ptr<Streams> streams(new (std::nothrow)
                                         Streams(driver_, fresh, gpus_.facts(gpu), settings_));
    if (streams == nullptr)
        return failure(MPI_ERR_NO_MEM, "out of memory for the streams of GPU {}", gpu);
    if (const Status refused = pins_.apply(fresh); !refused.ok())
        log::warn("cuda: {}", refused.text());
    streams->make_ready();
    streams_.push_back(std::move(streams));
    return streams_.back().get();
}

void CudaDevice::drop_dead_contexts() {
    while (const CUcontext dead = watch_.take_dead()) {
        for (const auto& streams : streams_)
            if (streams->context().handle == dead)
                streams->abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
        drop_context(dead);
    }
}

// Everything that lived in a context that is gone. Its copies in flight have been completed with an
// error already; those that had not started go another way.
void CudaDevice::drop_context(CUcontext context) {
    struct Unstarted {
        Copy copy;
        Completion* done;
        Mapped mapped;
    };
    std::vector<Unstarted> unstarted;
    for (const auto& streams : streams_)
        if (streams->context().handle == context) {
            streams->abandon(CUDA_ERROR_CONTEXT_IS_DESTROYED);
            for (const FusedQueue::Item& item : streams->take_unstarted())
                unstarted.push_back({item.copy, item.done, mapped_ends(item.copy)});
        }
    ++losses_;
    pointers_.forget_context(reinterpret_cast<std::uintptr_t>(context));
    mappings_.forget_context(context);
    pins_.forget_context(context);
    scratch_.forget_context(context);
    gpus_.forget_context(context);
    std::erase_if(streams_,
                  [context](const auto& streams) { return streams->context().handle == context; });
    for (Unstarted& each : unstarted) {
        if (map_again(each.mapped, each.copy))
            copy(each.copy, *each.done);
        else
            each.done->complete(context_destroyed(each.copy));
    }
}

void CudaDevice::flush_batch(BatchHint more) {
    for (const auto& streams : streams_)
        if (streams->pending()) streams->flush_batch(more);
}

int CudaDevice::progress() {
    int finished = 0;
    drop_dead_contexts();
    CUcontext dead = nullptr;
    for (const auto& streams : streams_) {
        if (!streams->pending()) continue;
        finished += streams->progress();
        if (streams->lost()) dead = streams->context().handle;
    }
    // One at a time: a second one is found by the next call, or by its next use.
    if (dead != nullptr) drop_context(dead);
    return finished;
}

bool CudaDevice::pending() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const auto& streams) { return streams->pending(); });
}

// --- BAR mappings ------------------------------------------------------------------------------

// Opening one takes the driver's lock for long: not while copies are in flight.
bool CudaDevice::has_bar_mapping(const Location& location, const void* address, Bytes bytes) {
    if (!gdrcopy_ || !driver_.ready() || !bar_mappings_.possible()) return false;
    if (bytes == 0) return true;
    if (!location.on_device() || location.buffer_id == 0) return false;
    if (bar_mappings_.has(location.buffer_id, address, bytes)) return true;
    return bar_mappings_.repays(location, address, gpus_.facts(location.gpu)) && !pending() &&
           bar_mappings_.open(location, address, bytes);
}

// --- host memory -------------------------------------------------------------------------------

Status CudaDevice::settle_network_writes(int gpu) {
    // Older drivers order these writes themselves.
    if (driver_.cu.cuFlushGPUDirectRDMAWrites.function == nullptr) return success();
    Result<Context> context = working_context(gpu);
    GANTRY_TRY(context.status());
    const Current current(driver_, *context);
    if (!current.ok()) return driver_.failed("cuCtxPushCurrent", current.result(), "for a flush");
    const CUresult result = driver_.call(driver_.cu.cuFlushGPUDirectRDMAWrites,
                                         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED) return success();
    return driver_.failed("cuFlushGPUDirectRDMAWrites", result, fmt::format("on GPU {}", gpu));
}

Status CudaDevice::pin(void* address, Bytes bytes) {
    pointers_.forget_range(address, bytes);  // Ours and host memory, whatever was there before.
    pins_.add(address, bytes);
    drop_dead_contexts();
    if (!driver_.ready() || streams_.empty())
        return success();  // Registered together with the first streams.
    return pins_.apply(streams_.front()->context());
}

void CudaDevice::unpin(void* address) {
    drop_dead_contexts();
    pins_.remove(address);
}

// --- other processes ---------------------------------------------------------------------------

Result<IpcHandle> CudaDevice::export_memory(const Location& location) {
    if (location.ipc == IpcKind::none || !location.on_device() || !driver_.ready())
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "memory at {:#x} cannot be opened by other processes: it is staged",
                       location.base);
    drop_dead_contexts();
    Result<Context> context = working_context(location.gpu);
    if (!context.ok()) return std::move(context).status();
    bool lost = false;
    Result<IpcHandle> handle =
        exports_.name(location, *context, gpus_.facts(location.gpu).uuid, &lost);
    if (lost) drop_context(context->handle);
    return handle;
}

Result<void*> CudaDevice::open_memory(const IpcHandle& handle, int gpu, Opening opening) {
    if (opening == Opening::known_only) return open_again(handle, gpu);
    // The driver does not open a handle in the process that made it; there the memory is simply at
    // hand.
    if (exports_.is_own(handle)) return reinterpret_cast<void*>(handle.base);
    if (handle.kind == IpcKind::none)
        return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                       "memory of {} bytes of a peer has no handle that can be opened",
                       handle.size);
    if (!driver_.ready())
        return failure(MPI_ERR_OTHER,
                       "opening a peer's device memory: the CUDA driver is not initialised here");
    gpus_.fill();
    if (void* again = open_again(handle, gpu)) return again;
    // The second round is for a context that is found destroyed.
    for (int round = 0;; ++round) {
        Result<Context> context = working_context(gpu);
        if (!context.ok()) return std::move(context).status();
        Result<void*> opened =
            mappings_.open(handle, *context, {gpu_of(handle.gpu) < 0, opening == Opening::anchor});
        if (opened.ok() || round == 1 || Current(driver_, *context).ok()) return opened;
        drop_context(context->handle);
    }
}

// The context of an idle mapping need not be looked at where copies are made in it: whether it was
// reset is found out by the next of these, before anything is started.
void* CudaDevice::open_again(const IpcHandle& handle, int gpu) {
    if (!driver_.ready() || exports_.is_own(handle)) return nullptr;
    drop_dead_contexts();
    return mappings_.open_again(handle, gpu, [this](const Context& context) {
        return std::any_of(streams_.begin(), streams_.end(), [&context](const auto& streams) {
            return streams->context() == context && !streams->lost();
        });
    });
}

void CudaDevice::close_memory(const IpcHandle& handle, int gpu) {
    if (exports_.is_own(handle)) return;
    drop_dead_contexts();
    mappings_.close(handle, gpu);
}

Access CudaDevice::access(const IpcHandle& handle, int gpu) {
    return exports_.is_own(handle) ? Access::open : mappings_.access(handle, gpu);
}

std::uint32_t CudaDevice::descriptor_inbox() {
    return mappings_.inbox();
}

Status CudaDevice::send_descriptor(const IpcHandle& handle, std::uint32_t inbox) {
    drop_dead_contexts();
    return exports_.send_descriptor(handle, inbox);
}

void CudaDevice::forget_memory(std::uint64_t buffer_id, const Uuid& gpu) {
    if (!driver_.ready()) return;
    drop_dead_contexts();
    mappings_.forget(buffer_id, gpu);
}

void CudaDevice::forget_ended_processes() {
    if (!driver_.ready()) return;
    drop_dead_contexts();
    mappings_.forget_ended_processes(&main_thread_has_ended);
}

bool CudaDevice::still_valid(const IpcHandle& handle) {
    if (handle.buffer_id == 0 || !driver_.ready()) return false;
    if (query_.still_is(handle.base, handle.buffer_id)) return true;
    exports_.forget(handle.buffer_id);
    return false;
}

// --- device memory of our own ------------------------------------------------------------------

void* CudaDevice::borrow(const void* like, Bytes bytes) {
    Place home = place(like);
    if (!home.device && classify(like, 1).ok()) home = place(like);
    if (!home.device || home.home != home.gpu || home.pages) return nullptr;
    Result<Streams*> streams = streams_in(home.context, home.gpu);
    return streams.ok() ? scratch_.borrow((*streams)->context(), bytes) : nullptr;
}

// --- end ---------------------------------------------------------------------------------------

// A forked child shares nothing with the driver but copies of its handles: there nothing is
// released, not even quietly.
void CudaDevice::shut_down() {
    if (getpid() != owner_) {
        for (auto& streams : streams_)
            (void)streams.release();
        streams_.clear();
        bar_mappings_.abandon();
        scratch_.abandon();
        return;
    }
    drop_dead_contexts();
    for (const auto& streams : streams_)
        streams->close();
    scratch_.clear();
    mappings_.clear();
    bar_mappings_.clear();
    pins_.clear();
    streams_.clear();
    pointers_.clear();
    exports_.clear();
    gpus_.release();
}

}  // namespace gantry::device::cuda
