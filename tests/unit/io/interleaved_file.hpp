// SPDX-License-Identifier: BSD-3-Clause
//
// A file of four ranks whose runs interleave, and what each of its bytes is, for tests of what befalls its ranks.
#pragma once

#include "faults/revocations.hpp"
#include "io/fake/faulty_system.hpp"
#include "io/fake/inline_backend.hpp"
#include "io/file.hpp"
#include "p2p/group.hpp"
#include "world/harness/world.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace gantry::io {

constexpr int kRanks = 4;
constexpr Bytes kRun = 24, kRuns = 100;  // of each rank
constexpr std::uint32_t kContext = 40, kWindowContext = 41;

// Never 0, which stands where nobody has written.
inline std::byte byte_of(std::int64_t place) {
    return static_cast<std::byte>(1 + (place * 13 + place / 250) % 251);
}

inline bool no_wrong_byte(const std::vector<std::byte>& file) {
    for (std::size_t place = 0; place < file.size(); ++place)
        if (file[place] != std::byte{} && file[place] != byte_of(static_cast<std::int64_t>(place)))
            return false;
    return true;
}

// Rank r has runs r, r + 4, ... of the file.
inline std::shared_ptr<const View> interleaved(int rank) {
    auto view = std::make_shared<View>();
    view->displacement = static_cast<std::int64_t>(kRun) * rank;
    view->filetype = layout::listed_layout(static_cast<std::ptrdiff_t>(kRun * kRanks),
                                           std::vector<layout::Block>{{0, kRun}});
    return view;
}

// Those that have the file, with a context of its own.
inline p2p::Group group_of(const world::Rank& rank, std::uint32_t context) {
    p2p::Group group = rank.all;
    group.context = context | p2p::kCollectiveContext;
    return group;
}

// The file as one rank of the world has it. What ends it for a death is told to the others by `revocations`.
struct FileOfRank {
    FileOfRank(world::Rank& rank, FaultySystem& system, faults::Revocations& revocations,
               const Hints& hints)
        : common(rank.transfer.config, nullptr),
          files(rank.transfer, rank.messenger, rank.windows, common),
          file(files, group_of(rank, kContext), "the file", MPI_MODE_RDWR | MPI_MODE_CREATE,
               hints) {
        files.use(std::make_unique<InlineBackend>(system));
        files.give_up_by([&revocations](std::uint32_t context) {
            revocations.revoke(context, faults::wire::RevokedBy::death);
            return true;
        });
    }
    Task<Status> open(world::Rank& rank) {
        return file.together(rank.executor,
                             file.open(rank.executor, file.team(), group_of(rank, kWindowContext)));
    }

    coll::Common common;
    Files files;
    File file;
};

}  // namespace gantry::io
