// SPDX-License-Identifier: BSD-3-Clause
//
// Images have the element distance of the original, so that predefined pairs and the program's
// operations see what they expect.
#include "coll/host_image.hpp"

#include "coll/exchange.hpp"
#include "transfer/local_move.hpp"
#include "transfer/mover.hpp"
#include "transfer/pack.hpp"

#include <cstring>

namespace gantry::coll {

Status HostImage::allocate(const Team& team, std::uint64_t count, const layout::Layout& layout) {
    const layout::Span span = layout::span_of(layout, count);
    const std::size_t bytes = span.bytes();
    memory_ = Scratch::take(scratch_of(team), bytes);
    if (memory_.address() == nullptr)
        return failure(MPI_ERR_NO_MEM,
                       "out of memory for the {} bytes of a copy of {} elements in host memory",
                       bytes, count);
    buffer_ = {static_cast<std::byte*>(memory_.address()) - span.low, count, &layout};
    return success();
}

bool on_host(const Team& team, const p2p::Buffer& buffer) {
    device::Device& device = team.context->device;
    if (!device.active() || buffer.bytes() == 0) return true;
    Result<device::Location> location = buffer.contiguous()
                                            ? device.classify(buffer.data(), 1)
                                            : transfer::locate_blocks(device, buffer);
    return location.ok() && !location->on_device();
}

namespace {

// In place: one buffer. Behind MPI_BOTTOM the layouts hold the addresses.
bool are_one(const p2p::Buffer& source, const p2p::Buffer& sink) {
    return source.address == sink.address &&
           (source.address != nullptr || source.layout == sink.layout);
}

}  // namespace

Task<Status> copy(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink) {
    if (source.bytes() == 0 || are_one(source, sink)) co_return success();
    // What does not fit is an error of messages.
    if (source.contiguous() && sink.contiguous() && source.bytes() <= sink.bytes()) {
        if (!team.context->device.active()) {
            std::memcpy(sink.data(), source.data(), source.bytes());
            co_return success();
        }
        Status copied = co_await transfer::copy(executor, *team.context, sink.data(), source.data(),
                                                source.bytes());
        co_return copied;
    }
    Status copied = co_await transfer::copy_local(executor, *team.context, source, sink);
    co_return copied;
}

}  // namespace gantry::coll
