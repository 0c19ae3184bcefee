// SPDX-License-Identifier: BSD-3-Clause
//
// GpuNeighbours: which GPUs the ranks of the node use, told through its segment. A GPU is a number
// made from its UUID; two that get the same one only seem to be shared.
#pragma once

#include "device/device.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <vector>

namespace gantry::transfer {

class GpuNeighbours final : public device::Neighbours {
  public:
    GpuNeighbours(const std::vector<transport::Transport*>& transports, int world_rank)
        : transports_(transports), world_rank_(world_rank) {}

    // This rank uses that GPU, number `gpu` of its device.
    void mark(device::Device& device, int gpu) {
        const std::uint64_t known = std::uint64_t{1} << (gpu % 64);
        if ((marked_ & known) != 0) [[likely]]
            return;
        marked_ |= known;
        for (transport::Transport* transport : transports_)
            if (transport::SharedSegment* own = transport->shared_segment(world_rank_))
                own->note_gpu(number_of(device.gpu_facts(gpu).uuid));
    }
    // A transport that has come later.
    void mark_all(device::Device& device, transport::Transport& transport) const {
        transport::SharedSegment* const own = transport.shared_segment(world_rank_);
        for (int gpu = 0; own != nullptr && gpu < device.gpu_count(); ++gpu)
            if (marked(gpu)) own->note_gpu(number_of(device.gpu_facts(gpu).uuid));
    }
    bool marked_any() const { return marked_ != 0; }
    bool marked(int gpu) const { return (marked_ >> (gpu % 64) & 1) != 0; }
    bool use(const device::Uuid& gpu) const override {
        const std::uint64_t number = number_of(gpu);
        for (transport::Transport* transport : transports_) {
            const transport::SharedSegment* own = transport->shared_segment(world_rank_);
            if (own != nullptr && own->others_use(number)) return true;
        }
        return false;
    }

  private:
    static std::uint64_t number_of(const device::Uuid& gpu) {
        std::uint64_t hash = 14695981039346656037u;  // FNV-1a
        for (const std::uint8_t byte : gpu)
            hash = (hash ^ byte) * 1099511628211u;
        return hash | 1;
    }

    const std::vector<transport::Transport*>& transports_;
    const int world_rank_;
    std::uint64_t marked_ = 0;
};

}  // namespace gantry::transfer
