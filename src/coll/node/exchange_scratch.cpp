// SPDX-License-Identifier: BSD-3-Clause
#include "coll/node/exchange_scratch.hpp"

#include "base/scope.hpp"
#include "coll/exchange.hpp"
#include "coll/host_image.hpp"
#include "transfer/context.hpp"
#include "transfer/pack.hpp"

#include <algorithm>

namespace gantry::coll {
namespace {

struct Found {
    bool on_device = false;  // all of them, on one GPU
    bool one_run = true;     // contiguous blocks of one allocation
    bool mappable = true;    // peers can map it by its handle alone
    const void* like = nullptr;
    Bytes bytes = 0;
};

// Blocks that follow each other are one question.
Found look_at(const Team& team, const std::vector<p2p::Buffer>& blocks) {
    Found found;
    device::Device& device = team.context->device;
    std::uint64_t allocation = 0;
    int gpu = -1;
    for (std::size_t i = 0; i < blocks.size();) {
        const p2p::Buffer& block = blocks[i++];
        Bytes bytes = block.bytes();
        if (bytes == 0) continue;
        while (block.contiguous() && i < blocks.size() && blocks[i].contiguous() &&
               (blocks[i].bytes() == 0 || blocks[i].data() == block.data() + bytes))
            bytes += blocks[i++].bytes();
        Result<device::Location> location = block.contiguous()
                                                ? device.classify(block.data(), bytes)
                                                : transfer::locate_blocks(device, block);
        if (!location.ok() || !location->on_device()) return {};
        if (found.like != nullptr && location->gpu != gpu) return {};
        found.one_run = found.one_run && block.contiguous() &&
                        (found.like == nullptr || location->buffer_id == allocation);
        found.mappable = found.mappable && location->ipc == device::IpcKind::legacy;
        found.like = block.data();
        found.bytes += bytes;
        allocation = location->buffer_id;
        gpu = location->gpu;
    }
    found.on_device = found.like != nullptr;
    return found;
}

// The block that goes to everybody who gets one; null: they differ.
const p2p::Buffer* only_block(const std::vector<p2p::Buffer>& blocks) {
    const p2p::Buffer* only = nullptr;
    for (const p2p::Buffer& block : blocks) {
        if (block.bytes() == 0) continue;
        if (only == nullptr) only = &block;
        if (block.address != only->address || block.count != only->count ||
            block.layout != only->layout)
            return nullptr;
    }
    return only;
}

}  // namespace

std::vector<DirectScratch::Moved> DirectScratch::move(std::vector<p2p::Buffer>& blocks,
                                                      DeviceScratch& memory) {
    std::vector<Moved> moved;
    Bytes at = 0;
    for (p2p::Buffer& block : blocks) {
        if (block.bytes() == 0) continue;
        const p2p::Buffer packed = transfer::bytes_buffer(memory.data() + at, block.bytes());
        at += block.bytes();
        moved.push_back({block, packed});
        block = packed;
    }
    return moved;
}

void DirectScratch::replace(Traffic& traffic) {
    if (!team_.context->device.active() || team_.failed_before()) return;
    const Found out = look_at(team_, traffic.outgoing), in = look_at(team_, traffic.incoming);
    if (out.on_device && !out.one_run) {
        const p2p::Buffer* const only = only_block(traffic.outgoing);
        out_memory_ = DeviceScratch(team_, out.like, only != nullptr ? only->bytes() : out.bytes);
        if (out_memory_.data() != nullptr && only != nullptr) {
            const Moved moved{*only, transfer::bytes_buffer(out_memory_.data(), only->bytes())};
            for (p2p::Buffer& block : traffic.outgoing)
                if (block.bytes() > 0) block = moved.packed;
            outgoing_.push_back(moved);
        } else if (out_memory_.data() != nullptr) {
            outgoing_ = move(traffic.outgoing, out_memory_);
        }
    }
    if (in.on_device && (!in.one_run || !in.mappable)) {
        in_memory_ = DeviceScratch(team_, in.like, in.bytes);
        if (in_memory_.data() != nullptr) incoming_ = move(traffic.incoming, in_memory_);
    }
}

namespace {

// Strided on one side: a kernel inside the GPU, else a message to itself.
Task<Status> copy_strided(Executor& executor, Team team, p2p::Buffer source, p2p::Buffer sink) {
    transfer::Context& context = *team.context;
    const bool packs = sink.contiguous();
    const p2p::Buffer& strided = packs ? source : sink;
    const p2p::Buffer& packed = packs ? sink : source;
    Result<device::Location> there = transfer::locate_blocks(context.device, strided),
                             here = context.device.classify(packed.data(), packed.bytes());
    if (packed.contiguous() && packed.bytes() == strided.bytes() && there.ok() && here.ok() &&
        there->on_device() && here->on_device() && there->gpu == here->gpu) {
        context.arbiter.use(there->gpu);
        const transfer::Piece piece{strided, *there, 0, strided.bytes()};
        Status moved;
        if (packs)
            moved = co_await transfer::pack_inside_gpu(executor, context, piece, packed.data());
        else
            moved = co_await transfer::unpack_inside_gpu(executor, context, piece, packed.data());
        if (moved.error_class() != MPI_ERR_UNSUPPORTED_OPERATION) co_return moved;
    }
    Status copied = co_await copy(executor, team, source, sink);
    co_return copied;
}

}  // namespace

Task<Status> copy_blocks(Executor& executor, Team team, std::vector<p2p::Buffer> from,
                         std::vector<p2p::Buffer> to) {
    Scope copies(executor);
    for (std::size_t i = 0; i < from.size();) {
        p2p::Buffer source = from[i], sink = to[i];
        ++i;
        if (source.contiguous() && sink.contiguous()) {
            Bytes bytes = source.bytes();
            while (i < from.size() && from[i].contiguous() && to[i].contiguous() &&
                   from[i].data() == source.data() + bytes && to[i].data() == sink.data() + bytes)
                bytes += from[i++].bytes();
            source = transfer::bytes_buffer(source.data(), bytes);
            sink = transfer::bytes_buffer(sink.data(), bytes);
            copies.spawn(copy(executor, team, source, sink));
        } else {
            copies.spawn(copy_strided(executor, team, source, sink));
        }
    }
    Status all = co_await copies.join(executor);
    co_return all;
}

Task<Status> DirectScratch::copy_all(Executor& executor, const std::vector<Moved>& moved,
                                     p2p::Buffer Moved::*source, p2p::Buffer Moved::*sink) {
    std::vector<p2p::Buffer> from, to;
    for (const Moved& each : moved) {
        from.push_back(each.*source);
        to.push_back(each.*sink);
    }
    return copy_blocks(executor, team_, std::move(from), std::move(to));
}

Task<Status> DirectScratch::pack(Executor& executor) {
    return copy_all(executor, outgoing_, &Moved::block, &Moved::packed);
}

Task<Status> DirectScratch::unpack(Executor& executor) {
    return copy_all(executor, incoming_, &Moved::packed, &Moved::block);
}

}  // namespace gantry::coll
