// SPDX-License-Identifier: BSD-3-Clause
//
// NoneDevice: a process without GPUs (GANTRY_CUDA=off). Every pointer is host memory; copies are
// plain memory copies that are done at once; nothing can be opened or exported.
#pragma once

#include "device/device.hpp"

namespace gantry::device::none {

class NoneDevice final : public Device {
  public:
    NoneDevice() : Device("none") {}
    bool active() override { return false; }
    std::span<const GpuFacts> gpus() override { return {}; }
    bool reaches(int, const Uuid&) override { return false; }
    Result<Location> classify(const void*, Bytes) override { return Location{}; }
    void copy(const Copy& copy, Completion& done) override;
    void flush_batch(BatchHint) override {}
    int progress() override { return 0; }
    bool pending() const override { return false; }
    bool has_bar_mapping(const Location&, const void*, Bytes) override { return false; }
    Status settle_network_writes(int) override { return success(); }
    Status pin(void*, Bytes) override { return unsupported("page-locking memory"); }
    Result<IpcHandle> export_memory(const Location&) override {
        return unsupported("exporting device memory");
    }
    Result<void*> open_memory(const IpcHandle&, int, Opening opening) override {
        if (opening == Opening::known_only) return nullptr;
        return unsupported("opening device memory");
    }
    void close_memory(const IpcHandle&, int) override {}
    Access access(const IpcHandle&, int) override { return Access::never; }
    std::uint32_t descriptor_inbox() override { return 0; }
    Status send_descriptor(const IpcHandle&, std::uint32_t) override {
        return unsupported("sending the descriptor of device memory");
    }
    void* borrow(const void*, Bytes) override { return nullptr; }
    void give_back(void*) override {}
    void forget_memory(std::uint64_t, const Uuid&) override {}
    bool still_valid(const IpcHandle&) override { return false; }
    void shut_down() override {}

  private:
    static Status unsupported(const char* what);
};

}  // namespace gantry::device::none
