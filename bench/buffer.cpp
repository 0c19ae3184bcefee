// SPDX-License-Identifier: BSD-3-Clause
#include "buffer.hpp"

#include "driver.hpp"
#include "job.hpp"
#include "openacc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gantry::bench {
namespace {

// Messages start where an allocator would put them.
constexpr Bytes kAlignment = 256;
constexpr Bytes kPage = 4096;
constexpr unsigned kAttachGlobal = 1;  // CU_MEM_ATTACH_GLOBAL

std::byte* plain(Bytes bytes) {
    void* memory = std::aligned_alloc(kPage, round_up(std::max<Bytes>(bytes, 1), kPage));
    if (memory == nullptr) give_up(fmt::format("no host memory for {} bytes", bytes));
    std::memset(memory, 0, bytes);  // touched here, not by the first message
    return static_cast<std::byte*>(memory);
}

std::byte* pinned(Bytes bytes) {
    void* memory = nullptr;
    driver().check(driver().cuMemHostAlloc(&memory, std::max<Bytes>(bytes, 1), 0), "cuMemHostAlloc",
                   bytes);
    return static_cast<std::byte*>(memory);
}

}  // namespace

CUdeviceptr address_of(const void* device) {
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(device));
}

HostMemory::HostMemory(Bytes bytes, bool want_pinned) : pinned_(want_pinned && driver().started()) {
    data_ = pinned_ ? pinned(bytes) : plain(bytes);
}
HostMemory::~HostMemory() {
    if (pinned_)
        driver().cuMemFreeHost(data_);
    else
        std::free(data_);
}

Buffer::Buffer(Placement placement, Bytes message_bytes, int messages, Rows rows)
    : placement_(placement),
      message_bytes_(message_bytes),
      stride_(round_up(std::max<Bytes>(rows.span(message_bytes), 1), kAlignment)),
      messages_(messages),
      rows_(rows) {
    CUdeviceptr device = 0;
    switch (placement) {
        case Placement::host: base_ = plain(total_bytes()); return;
        case Placement::pinned: base_ = pinned(total_bytes()); return;
        case Placement::device:
            driver().check(driver().cuMemAlloc_v2(&device, total_bytes()), "cuMemAlloc",
                           total_bytes());
            break;
        case Placement::openacc:
            openacc().start(driver().gpu());
            base_ = static_cast<std::byte*>(openacc().allocate(total_bytes()));
            return;
        case Placement::managed:
            driver().check(driver().cuMemAllocManaged(&device, total_bytes(), kAttachGlobal),
                           "cuMemAllocManaged", total_bytes());
            break;
    }
    base_ = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(device));
}

Buffer::~Buffer() {
    switch (placement_) {
        case Placement::host: std::free(base_); break;
        case Placement::pinned: driver().cuMemFreeHost(base_); break;
        case Placement::openacc: openacc().release(base_); break;
        case Placement::device:
        case Placement::managed: driver().cuMemFree_v2(address_of(base_)); break;
    }
}

void Buffer::write(const std::byte* from) const {
    if (placement_ == Placement::openacc)
        openacc().to_device(base_, from, total_bytes());
    else if (on_device())
        copy_to_device(base_, from, total_bytes());
    else
        std::memcpy(base_, from, total_bytes());
}

void Buffer::read(std::byte* to) const {
    if (placement_ == Placement::openacc)
        openacc().from_device(to, base_, total_bytes());
    else if (on_device())
        copy_to_host(to, base_, total_bytes());
    else
        std::memcpy(to, base_, total_bytes());
}

void copy_to_host(std::byte* to, const void* device, Bytes bytes) {
    driver().check(driver().cuMemcpyDtoH_v2(to, address_of(device), bytes), "cuMemcpyDtoH", bytes);
}

void copy_to_device(void* device, const std::byte* from, Bytes bytes) {
    driver().check(driver().cuMemcpyHtoD_v2(address_of(device), from, bytes), "cuMemcpyHtoD",
                   bytes);
    // A copy from pageable memory may return before the device has it; MPI must find it there.
    driver().check(driver().cuCtxSynchronize(), "cuCtxSynchronize");
}

}  // namespace gantry::bench
