// SPDX-License-Identifier: BSD-3-Clause
#include "copy.hpp"

#include <string.h>

#include <vector>

#include "entry.hpp"

namespace simgpu {
namespace {

constexpr std::size_t kStagedHtoD =
    65536;  // a synchronous H2D from pageable memory returns early up to here

struct Staged {
    std::vector<char> bytes;
};

// Managed memory behaves like page-locked memory with a device on one side only.
// `executor`: the GPU whose stream runs the copy.
Direction direction_of(const Place& target, const Place& source, const Device* executor) {
    const auto on_device = [](const Place& place, const Place& other) {
        return place.residence == Residence::device ||
               (place.residence == Residence::managed && other.residence != Residence::device);
    };
    const bool to = on_device(target, source);
    const bool from = on_device(source, target);
    if (to && from) {
        return target.device == source.device ? Direction::d2d
               : target.device == executor    ? Direction::peer_get
                                              : Direction::peer;
    }
    return to ? Direction::h2d : from ? Direction::d2h : Direction::h2h;
}

bool pageable(const Place& place) {
    return place.residence == Residence::pageable;
}

// When the asynchronous and synchronous calls may return, as the driver documents it.
bool must_wait(const CopyRequest& request, Direction direction, const Place& target,
               const Place& source, std::size_t bytes) {
    if (request.returns == Return::early) {
        return direction == Direction::d2h && pageable(target);
    }
    if (target.sync_memops || source.sync_memops) {
        return true;
    }
    switch (direction) {
        case Direction::d2d:
        case Direction::peer:
        case Direction::peer_get: return false;
        case Direction::h2d: return !(pageable(source) && bytes <= kStagedHtoD);
        case Direction::d2h:
        case Direction::h2h: return true;
    }
    return true;
}

}  // namespace

void Movement::apply(char* target, const char* source) const {
    if (rows() == 1 || (target_pitch == width && source_pitch == width && depth == 1)) {
        memmove(target, source, bytes());
        return;
    }
    for (std::size_t slice = 0; slice < depth; ++slice) {
        for (std::size_t row = 0; row < height; ++row) {
            memmove(target + slice * target_slice + row * target_pitch,
                    source + slice * source_slice + row * source_pitch, width);
        }
    }
}

CUresult copy(Driver& d, const CopyRequest& request, CUstream handle) {
    const StreamRef ref = find_stream(d, handle);
    SIM_TRY(ref.result);
    if (request.returns == Return::when_done) {
        SIM_TRY(refuse_during_capture(d));
    }
    const Movement& movement = request.movement;
    if (movement.bytes() == 0) {
        return CUDA_SUCCESS;
    }
    const auto look_up = [&](Address address, Side side, std::size_t extent) {
        return side == Side::device ? locate_known(d, address, extent) : locate(d, address, extent);
    };
    const Place target = look_up(request.target, request.target_side, movement.target_extent());
    const Place source = look_up(request.source, request.source_side, movement.source_extent());
    SIM_TRY(target.result);
    SIM_TRY(source.result);
    if (ref.stream->capture == CaptureState::active) {
        return CUDA_SUCCESS;  // recorded, not run: graphs are not modelled further
    }
    const Direction direction = direction_of(target, source, ref.stream->context->device);
    const HostMemory host = (direction == Direction::h2d && pageable(source)) ||
                                    (direction == Direction::d2h && pageable(target))
                                ? HostMemory::pageable
                                : HostMemory::pinned;
    auto op = std::make_shared<Op>();
    op->kind = OpKind::copy;
    op->bytes = movement.bytes();
    op->enqueued = request.called;
    op->cost = d.model.copy(direction, movement.bytes(), movement.rows(), movement.shape(), host,
                            request.further);
    const bool waits = must_wait(request, direction, target, source, movement.bytes());
    if (direction == Direction::h2d && pageable(source) && !waits) {
        // The source is staged during the call: the program may reuse it as soon as this returns.
        Movement pack = movement;
        pack.target_pitch = movement.width;
        pack.target_slice = movement.width * movement.height;
        auto staged = std::make_shared<Staged>();
        staged->bytes.resize(movement.bytes());
        {
            const sanitizer::Visible visible;
            pack.apply(staged->bytes.data(), source.bytes);
        }
        Movement unpack = movement;
        unpack.source_pitch = pack.target_pitch;
        unpack.source_slice = pack.target_slice;
        op->effect = [staged, unpack, to = target.bytes] {
            unpack.apply(to, staged->bytes.data());
            return CUDA_SUCCESS;
        };
    } else {
        op->effect = [movement, to = target.bytes, from = source.bytes] {
            movement.apply(to, from);
            return CUDA_SUCCESS;
        };
    }
    d.scheduler.enqueue(*ref.stream, op);
    if (waits) {
        d.scheduler.wait(op);
        return ref.stream->context->sticky;
    }
    return CUDA_SUCCESS;
}

}  // namespace simgpu
