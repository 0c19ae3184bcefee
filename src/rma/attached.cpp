// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of dynamic windows. Others name it by its address; whether it is attached the owner judges.
#include "rma/windows.hpp"

#include "coll/exchange.hpp"

#include <algorithm>

namespace gantry::rma {
namespace {

// Whether one copy may touch both.
bool is_same_memory(const device::Location& one, const device::Location& other) {
    if (one.on_device() || other.on_device())
        return one.kind == other.kind && one.buffer_id == other.buffer_id;
    return true;
}

}  // namespace

Status Window::attach(void* base, Bytes bytes) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    for (const Attached& each : attached_)
        if (bytes > 0 && address < each.base + each.bytes && each.base < address + bytes)
            return failure(MPI_ERR_RMA_ATTACH,
                           "{} bytes at {} overlap {} bytes at {:#x}, which are attached already",
                           bytes, base, each.bytes, each.base);
    Result<device::Location> location = windows.context.locate(coll::bytes_buffer(base, bytes));
    if (!location.ok())
        return failure(MPI_ERR_RMA_ATTACH, "the memory to attach: {}", location.status().text());
    attached_.push_back({address, bytes, *location});
    return success();
}

Status Window::detach(const void* base) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    const auto found = std::find_if(attached_.begin(), attached_.end(),
                                    [address](const Attached& a) { return a.base == address; });
    if (found == attached_.end())
        return failure(MPI_ERR_RMA_ATTACH, "nothing is attached to the window at {}", base);
    attached_.erase(found);
    return success();
}

// Attached regions that touch are one for who names bytes of both.
const Window::Attached* Window::attached_around(std::uint64_t address, Bytes bytes) const {
    const Attached* const first = attached_at(address, bytes);
    const Attached* at = first;
    while (at != nullptr) {
        const Bytes inside = at->bytes - (address - at->base);
        if (bytes <= inside) return first;
        address += inside;
        bytes -= inside;
        at = attached_at(address, bytes);
        if (at != nullptr && !is_same_memory(at->location, first->location)) return nullptr;
    }
    return nullptr;
}

// The region that holds the first byte there; of no bytes one that ends there will do.
const Window::Attached* Window::attached_at(std::uint64_t address, Bytes bytes) const {
    for (const Attached& each : attached_)
        if (address - each.base < each.bytes || (bytes == 0 && address - each.base == each.bytes))
            return &each;
    return nullptr;
}

Status Window::check_attached(const Access& access, std::uint64_t address) const {
    const layout::Span span = layout::span_of(*access.layout, access.count);
    if (attached_around(address + static_cast<std::uint64_t>(span.low), span.bytes()) != nullptr)
        return success();
    return failure(MPI_ERR_RMA_RANGE, "{} bytes at {:#x} are not attached to the window",
                   span.bytes(), address);
}

}  // namespace gantry::rma
