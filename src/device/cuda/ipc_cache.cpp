// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/ipc_cache.hpp"

#include "base/log.hpp"
#include "device/cuda/exports.hpp"
#include "device/cuda/pointer_query.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gantry::device::cuda {

namespace {

constexpr std::size_t kMaxRefused = 64;

bool same(const IpcHandle& left, const IpcHandle& right) {
    return left.buffer_id == right.buffer_id && left.base == right.base && left.gpu == right.gpu &&
           left.origin == right.origin && left.bytes == right.bytes;
}

bool overlap(const IpcHandle& left, const IpcHandle& right) {
    return left.gpu == right.gpu && left.base < right.base + right.size &&
           right.base < left.base + left.size;
}

}  // namespace

IpcCache::Iterator IpcCache::lookup(const IpcHandle& handle, int gpu) {
    return std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& mapping) {
        return !mapping.doomed && mapping.gpu == gpu && same(mapping.handle, handle);
    });
}

void* IpcCache::use(Iterator mapping) {
    ++mapping->users;
    mappings_.splice(mappings_.begin(), mappings_, mapping);
    return reinterpret_cast<void*>(mapping->address);
}

Result<void*> IpcCache::open(const IpcHandle& handle, const Context& context, How how) {
    Iterator hit = lookup(handle, context.gpu);
    if (hit != mappings_.end() && hit->context != context && !Current(driver_, hit->context).ok()) {
        lost(hit);  // The context that it was opened in is gone, and the mapping with it.
        hit = mappings_.end();
    }
    if (hit != mappings_.end()) return use(hit);
    if (is_refused(handle) || is_kept_away(context.gpu, handle.gpu))
        return failure(MPI_ERR_OTHER, "opening {} bytes of a peer: refused before", handle.size);
    if (imports_.ready(handle) == Imports::Ready::not_yet)
        return failure(MPI_ERR_OTHER, "opening {} bytes of a peer: their descriptor has not come",
                       handle.size);
    if (!how.anchor) GANTRY_TRY(make_room(handle.size));
    Imports::Mapped mapped = map(handle, context);
    // An older mapping of memory that its owner has freed meanwhile can stand in the way.
    if (mapped.result == CUDA_ERROR_ALREADY_MAPPED && unmap_overlapping(handle))
        mapped = map(handle, context);
    if (how.hidden) note_try(handle, context.gpu, mapped);
    if (mapped.result != CUDA_SUCCESS) {
        if (mapped.result != CUDA_ERROR_OUT_OF_MEMORY && !is_lost(mapped.result)) {
            refused_.push_front(handle);
            if (refused_.size() > kMaxRefused) refused_.pop_back();
        }
        return driver_.failed(
            mapped.call, mapped.result,
            fmt::format("of {} bytes of a peer for GPU {}", handle.size, context.gpu));
    }
    const auto address = static_cast<std::uintptr_t>(mapped.address);
    mappings_.push_front({handle, context.gpu, context, address, 1, false, how.anchor,
                          buffer_id_at(driver_, address, &Calls::ipc)});
    if (how.anchor) {
        ++anchors_;
    } else {
        bytes_ += handle.size;
        ++driver_.calls().mappings_opened;
    }
    note_size();
    return reinterpret_cast<void*>(mapped.address);
}

Result<void*> IpcCache::open_lost(const Mapping& lost, const Context& context) {
    Result<void*> opened = open(lost.handle, context,
                                {tried_on(lost.gpu, lost.handle.gpu) != nullptr, lost.is_anchor});
    if (!opened.ok()) return opened;
    mappings_.front().users += lost.users - 1;
    lost_in_use_.remove_if([&lost](const Mapping& gone) {
        return gone.gpu == lost.gpu && same(gone.handle, lost.handle);
    });
    return opened;
}

Imports::Mapped IpcCache::map(const IpcHandle& handle, const Context& context) {
    const Current current(driver_, context);
    if (!current.ok()) return {current.result(), "cuCtxPushCurrent", 0};
    return imports_.map(handle, context.gpu);
}

const IpcCache::Hidden* IpcCache::tried_on(int gpu, const Uuid& hidden) const {
    for (const Hidden& tried : hidden_)
        if (tried.gpu == gpu && tried.other == hidden) return &tried;
    return nullptr;
}

// Memory that went meanwhile is refused, too: once another allocation was opened, only what is refused is.
void IpcCache::note_try(const IpcHandle& handle, int gpu, const Imports::Mapped& mapped) {
    if (mapped.result == CUDA_ERROR_OUT_OF_MEMORY || is_lost(mapped.result) ||
        tried_on(gpu, handle.gpu) != nullptr)
        return;
    const bool opened = mapped.result == CUDA_SUCCESS;
    hidden_.push_back({gpu, handle.gpu, opened});
    if (!opened)
        log::info(
            "cuda: a GPU that this process does not see is kept from it ({}: {}): what goes "
            "between "
            "it and GPU {} is staged",
            mapped.call, result_name(mapped.result), gpu);
}

bool IpcCache::is_refused(const IpcHandle& handle) const {
    return std::any_of(refused_.begin(), refused_.end(),
                       [&](const IpcHandle& refused) { return same(refused, handle); });
}

Status IpcCache::make_room(Bytes bytes) {
    auto oldest = mappings_.end();
    while (mappings_.size() - anchors_ + 1 > max_entries_ || bytes_ + bytes > max_bytes_) {
        if (oldest == mappings_.begin())
            return failure(MPI_ERR_NO_MEM,
                           "mapping {} bytes of a peer: {} mappings of {} bytes are in use, and "
                           "GANTRY_IPC_CACHE_ENTRIES is {}, "
                           "GANTRY_IPC_CACHE_BYTES is {}",
                           bytes, mappings_.size(), bytes_, max_entries_, max_bytes_);
        --oldest;
        if (oldest->users == 0) oldest = unmap(oldest);
    }
    return success();
}

bool IpcCache::unmap_overlapping(const IpcHandle& handle) {
    bool any = false;
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();) {
        if (mapping->users == 0 && overlap(mapping->handle, handle)) {
            mapping = unmap(mapping);
            any = true;
        } else {
            ++mapping;
        }
    }
    return any;
}

void IpcCache::close(const IpcHandle& handle, int gpu) {
    // Whose mapping it was does not matter: a new one only stays in use for longer.
    for (auto gone = lost_in_use_.begin(); gone != lost_in_use_.end(); ++gone) {
        if (gone->gpu != gpu || !same(gone->handle, handle)) continue;
        if (--gone->users == 0) lost_in_use_.erase(gone);
        return;
    }
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end(); ++mapping) {
        if (mapping->gpu != gpu || mapping->users == 0 || !same(mapping->handle, handle)) continue;
        if (--mapping->users == 0 && mapping->doomed) unmap(mapping);
        return;
    }
}

Access IpcCache::access(const IpcHandle& handle, int gpu) {
    if (lookup(handle, gpu) != mappings_.end()) return Access::open;
    if (is_refused(handle) || is_kept_away(gpu, handle.gpu) || handle.size > max_bytes_ ||
        max_entries_ == 0)
        return Access::never;
    switch (imports_.ready(handle)) {
        case Imports::Ready::yes: return Access::closed;
        case Imports::Ready::not_yet:
            return imports_.inbox() != 0 ? Access::no_descriptor : Access::never;
        case Imports::Ready::never: break;
    }
    return Access::never;
}

template <class Is>
void IpcCache::forget_if(Is meant) {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();) {
        const bool its = meant(mapping->handle);
        if (its && mapping->users == 0) {
            mapping = unmap(mapping);
        } else {
            if (its) mapping->doomed = true;
            ++mapping;
        }
    }
    refused_.remove_if(meant);
}

void IpcCache::forget(std::uint64_t buffer_id, const Uuid& gpu) {
    forget_if([&](const IpcHandle& handle) {
        return handle.buffer_id == buffer_id && handle.gpu == gpu;
    });
    imports_.forget(buffer_id);
}

void IpcCache::forget_ended_processes(bool (*has_ended)(int)) {
    std::vector<std::pair<int, bool>> asked;  // a few processes of one node
    forget_if([&](const IpcHandle& handle) {
        const int process = process_of(handle.origin);
        for (const auto& [known, ended] : asked)
            if (known == process) return ended;
        return asked.emplace_back(process, has_ended(process)).second;
    });
}

const IpcCache::Mapping* IpcCache::find(const void* address) const {
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    for (const Mapping& mapping : mappings_)
        if (value - mapping.address < mapping.handle.size) return &mapping;
    return nullptr;
}

// The program may have opened the same memory itself, and then it may lie where we have it.
const IpcCache::Mapping* IpcCache::replaced_by(const Location& own) const {
    for (const Mapping& mapping : mappings_)
        if (own.base < mapping.address + mapping.handle.size &&
            mapping.address < own.base + own.size && mapping.buffer_id != 0 &&
            mapping.buffer_id != own.buffer_id)
            return &mapping;
    return nullptr;
}

IpcCache::Iterator IpcCache::unmap(Iterator mapping) {
    {
        const Current current(driver_, mapping->context);
        if (!current.ok()) return lost(mapping);
        imports_.unmap(mapping->handle, static_cast<CUdeviceptr>(mapping->address));
    }
    return erase(mapping);
}

// The context that it was opened in is gone, and a legacy mapping with it.
IpcCache::Iterator IpcCache::lost(Iterator mapping) {
    imports_.context_lost(mapping->handle, static_cast<CUdeviceptr>(mapping->address));
    if (mapping->users > 0) lost_in_use_.push_back(*mapping);
    return erase(mapping);
}

IpcCache::Iterator IpcCache::erase(Iterator mapping) {
    if (mapping->is_anchor)
        --anchors_;
    else
        bytes_ -= mapping->handle.size;
    ++losses_;
    const Iterator next = mappings_.erase(mapping);
    note_size();
    return next;
}

void IpcCache::note_size() {
    driver_.calls().mappings_open = mappings_.size() - anchors_;
    driver_.calls().mapped = bytes_;
}

void IpcCache::forget_context(CUcontext context) {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();)
        mapping = mapping->context.handle == context ? lost(mapping) : std::next(mapping);
}

void IpcCache::clear() {
    for (Iterator mapping = mappings_.begin(); mapping != mappings_.end();)
        mapping = unmap(mapping);
    imports_.clear();
    lost_in_use_.clear();
    refused_.clear();
}

}  // namespace gantry::device::cuda
