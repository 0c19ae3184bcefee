// SPDX-License-Identifier: BSD-3-Clause
//
// Mapping: one allocation of a peer as one of this process's GPUs reaches it, in use until the object
// goes. The device keeps what nobody uses open for the next one (docs/design/mappings.md).
#pragma once

#include "device/device.hpp"

#include <mpi.h>

#include <algorithm>
#include <utility>

namespace gantry::transfer {

class Mapping {
  public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept { swap(other); }
    Mapping& operator=(Mapping&& other) noexcept {
        Mapping(std::move(other)).swap(*this);
        return *this;
    }
    ~Mapping() {
        if (base_ != nullptr) device_->close_memory(handle_, gpu_);
    }

    // MPI_ERR_UNSUPPORTED_OPERATION: that GPU does not reach it, or the driver refuses.
    static Result<Mapping> open(device::Device& device, const device::IpcHandle& handle, int gpu) {
        return open_so(device, handle, gpu, device::Opening::allowed);
    }
    // One that stays (anchors.hpp).
    static Result<Mapping> open_anchor(device::Device& device, const device::IpcHandle& handle,
                                       int gpu) {
        return open_so(device, handle, gpu, device::Opening::anchor);
    }
    // By the first GPU that reaches it: this one, or another one of this process.
    static Result<Mapping> open_by_any(device::Device& device, const device::IpcHandle& handle,
                                       int gpu) {
        Result<Mapping> mapping = open(device, handle, gpu);
        for (int other = 0; !mapping.ok() && other < device.gpu_count(); ++other) {
            if (other == gpu) continue;
            Result<Mapping> there = open(device, handle, other);
            if (there.ok()) return there;
        }
        return mapping;
    }
    // If it is open already; the driver is not asked.
    static Mapping of_open(device::Device& device, const device::IpcHandle& handle, int gpu) {
        Result<void*> base = device.open_memory(handle, gpu, device::Opening::known_only);
        return base.ok() ? Mapping(device, handle, gpu, *base) : Mapping();
    }
    // Which GPU of this process copies from or to memory on that one: the first that is the same, for
    // the copy needs no link then; else the first of all.
    static int gpu_for(device::Device& device, const device::IpcHandle& handle) {
        return std::max(device.gpu_of(handle.gpu), 0);
    }

    bool is_open() const { return base_ != nullptr; }
    const device::IpcHandle& handle() const { return handle_; }
    int gpu() const { return gpu_; }
    std::byte* base() const { return base_; }
    // Where the exporter's address is here.
    std::byte* at(std::uint64_t address) const { return base_ + (address - handle_.base); }
    // What copies are told of it.
    device::Location location() const {
        device::Location place;
        place.kind = device::MemoryKind::device;
        place.gpu = gpu_;
        place.base = reinterpret_cast<std::uintptr_t>(base_);
        place.size = handle_.size;
        return place;
    }

  private:
    static Result<Mapping> open_so(device::Device& device, const device::IpcHandle& handle, int gpu,
                                   device::Opening opening) {
        if (!device.reaches(gpu, handle.gpu))
            return failure(MPI_ERR_UNSUPPORTED_OPERATION,
                           "GPU {} does not reach that of another rank", gpu);
        Result<void*> base = device.open_memory(handle, gpu, opening);
        if (!base.ok()) return failure(MPI_ERR_UNSUPPORTED_OPERATION, "{}", base.status().text());
        return Mapping(device, handle, gpu, *base);
    }
    Mapping(device::Device& device, const device::IpcHandle& handle, int gpu, void* base)
        : device_(&device), handle_(handle), gpu_(gpu), base_(static_cast<std::byte*>(base)) {}
    void swap(Mapping& other) noexcept {
        std::swap(device_, other.device_);
        std::swap(handle_, other.handle_);
        std::swap(gpu_, other.gpu_);
        std::swap(base_, other.base_);
    }

    device::Device* device_ = nullptr;
    device::IpcHandle handle_;
    int gpu_ = -1;
    std::byte* base_ = nullptr;  // where handle_.base is here
};

}  // namespace gantry::transfer
