// SPDX-License-Identifier: BSD-3-Clause
//
// MappedPeers: memory of other ranks of the node as it is mapped here, in use until the object goes. The
// device keeps mappings open between operations.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"
#include "device/device.hpp"
#include "transfer/mapping.hpp"

#include <span>
#include <vector>

namespace gantry::coll {

// The world ranks of a team.
inline std::span<const int> ranks_of(const Team& team) {
    return std::span(team.group->peers)
        .subspan(static_cast<std::size_t>(team.first), static_cast<std::size_t>(team.size()));
}

// The name of device memory, told to all other members, or to these ranks of the job; kind none: it
// cannot be mapped, or only by a descriptor (virtual memory, pools).
device::IpcHandle export_to_all(const Team& team, const device::Location& location);
device::IpcHandle export_to(const Team& team, std::span<const int> ranks,
                            const device::Location& location);

// A copy between device memories, for copy_all().
inline device::Copy one_of_several(int gpu) {
    device::Copy copy;
    copy.gpu = gpu;
    copy.engine = device::Engine::fused;
    copy.batch = device::BatchHint::expected;
    return copy;
}
// All of them in one launch, if it can be.
Task<Status> copy_all(Executor& executor, Team team, std::vector<device::Copy> copies);

class MappedPeers {
  public:
    explicit MappedPeers(device::Device& device) : device_(device) {}
    MappedPeers(const MappedPeers&) = delete;
    MappedPeers& operator=(const MappedPeers&) = delete;

    // Where an address of the exporter is here, for that GPU of ours. MPI_ERR_UNSUPPORTED_OPERATION: it
    // cannot be mapped.
    Result<std::byte*> at(const device::IpcHandle& handle, int gpu, std::uint64_t address) {
        for (const transfer::Mapping& each : open_)
            if (each.handle().origin == handle.origin &&
                each.handle().buffer_id == handle.buffer_id)
                return each.at(address);
        Result<transfer::Mapping> opened = transfer::Mapping::open(device_, handle, gpu);
        GANTRY_TRY(opened.status());
        open_.push_back(std::move(*opened));
        return open_.back().at(address);
    }

  private:
    device::Device& device_;
    std::vector<transfer::Mapping> open_;
};

}  // namespace gantry::coll
