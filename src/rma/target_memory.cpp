// SPDX-License-Identifier: BSD-3-Clause
#include "rma/target_memory.hpp"

#include "rma/process_memory.hpp"
#include "transfer/mover.hpp"

#include <cstring>

namespace gantry::rma {
namespace {

bool is_aligned(const void* address, Bytes to) {
    return to == 0 || reinterpret_cast<std::uintptr_t>(address) % to == 0;
}

// What reductions may work on: items of one size follow each other at addresses of their own kind.
Bytes alignment_of(const Items& items) {
    return items.size % 16 == 0  ? 16
           : items.size % 8 == 0 ? 8
           : items.size % 4 == 0 ? 4
                                 : items.size;
}

// `target` is packed; what it was before goes to the result.
Status change_packed(const Change& change, std::byte* target, Bytes bytes) {
    if (change.result != nullptr) std::memcpy(change.result, target, bytes);
    if (change.verb == Verb::compare_and_swap) {
        if (std::memcmp(target, change.compare, bytes) == 0)
            std::memcpy(target, change.operand, bytes);
        return success();
    }
    return combine_packed(change.operation, change.items, change.operand, target, bytes);
}

}  // namespace

Status write_host(const Region& region, const std::byte* packed) {
    if (region.process != 0)
        return write_process(region.process, region.side.buffer, region.first, region.bytes,
                             packed);
    if (region.bytes > 0) transfer::copy_in(region.side, region.first, region.bytes, packed);
    return success();
}

Status read_host(const Region& region, std::byte* packed) {
    if (region.process != 0)
        return read_process(region.process, region.side.buffer, region.first, region.bytes, packed);
    if (region.bytes > 0) transfer::copy_out(region.side, region.first, region.bytes, packed);
    return success();
}

Status change_host(const Region& region, const Change& change) {
    if (region.bytes == 0) return success();
    Change aligned = change;
    std::unique_ptr<std::byte[]> operand;
    const Bytes alignment = alignment_of(change.items);
    if (change.operand != nullptr && !is_aligned(change.operand, alignment)) {
        Result<std::unique_ptr<std::byte[]>> copy =
            transfer::host_memory(region.bytes, "the operand of an accumulate");
        GANTRY_TRY(copy.status());
        operand = std::move(*copy);
        std::memcpy(operand.get(), change.operand, region.bytes);
        aligned.operand = operand.get();
    }
    if (region.process == 0 && region.side.contiguous() &&
        is_aligned(region.side.at(region.first), alignment))
        return change_packed(aligned, region.side.at(region.first), region.bytes);
    Result<std::unique_ptr<std::byte[]>> packed =
        transfer::host_memory(region.bytes, "the target of an accumulate");
    GANTRY_TRY(packed.status());
    GANTRY_TRY(read_host(region, packed->get()));
    GANTRY_TRY(change_packed(aligned, packed->get(), region.bytes));
    return write_host(region, packed->get());
}

Task<Status> write(Executor& executor, transfer::Context& context, Region region,
                   const std::byte* packed) {
    if (region.on_host() || region.bytes == 0) co_return write_host(region, packed);
    Status status;
    if (region.side.contiguous())
        status = co_await transfer::device_copy(executor, context, region.side.at(region.first),
                                                packed, region.bytes, region.side.location.gpu,
                                                device::Engine::h2d);
    else
        status = co_await transfer::unpack_to_device(executor, context,
                                                     region.side.piece(region.first, region.bytes),
                                                     packed, plan::Movers::copy_engines);
    co_return status;
}

Task<Status> read(Executor& executor, transfer::Context& context, Region region,
                  std::byte* packed) {
    if (region.on_host() || region.bytes == 0) co_return read_host(region, packed);
    Status status;
    if (region.side.contiguous())
        status = co_await transfer::device_copy(executor, context, packed,
                                                region.side.at(region.first), region.bytes,
                                                region.side.location.gpu, device::Engine::d2h);
    else
        status = co_await transfer::pack_from_device(executor, context,
                                                     region.side.piece(region.first, region.bytes),
                                                     packed, plan::Movers::copy_engines);
    co_return status;
}

Task<Status> change(Executor& executor, transfer::Context& context, Region region, Change change) {
    if (region.on_host() || region.bytes == 0) co_return change_host(region, change);
    Result<std::unique_ptr<std::byte[]>> packed =
        transfer::host_memory(region.bytes, "the target of an accumulate");
    if (!packed.ok()) co_return packed.status();
    Status status = co_await read(executor, context, region, packed->get());
    GANTRY_CO_TRY(status);
    Side copy = region.side;
    copy.buffer = Buffer{.address = packed->get()};
    copy.location = device::Location{};
    const Region on_host{copy, 0, region.bytes, 0};
    status = change_host(on_host, change);
    GANTRY_CO_TRY(status);
    status = co_await write(executor, context, region, packed->get());
    co_return status;
}

}  // namespace gantry::rma
