// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of dynamic windows. Others name it by its address; whether it is attached the owner judges.
#include "rma/windows.hpp"

#include "coll/exchange.hpp"

#include <algorithm>

namespace gantry::rma {

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

const Window::Attached* Window::attached_around(std::uint64_t address, Bytes bytes) const {
    for (const Attached& each : attached_)
        if (address - each.base <= each.bytes && bytes <= each.bytes - (address - each.base))
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
