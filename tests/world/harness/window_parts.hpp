// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of programs of world tests, and puts and gets of parts of them.
#pragma once

#include "rma/windows.hpp"
#include "world/harness/programs.hpp"

#include <memory>

namespace gantry::world {

// Of all ranks, each of which calls it.
inline Task<Status> open_window(Rank& rank, rma::Wanted wanted,
                                std::unique_ptr<rma::Window>* window) {
    p2p::Group group = rank.all;
    group.context = 77 | p2p::kCollectiveContext;
    Status made = co_await rank.windows.create(rank.executor, group, wanted, window);
    co_return made;
}

// As MPI_Win_create makes one.
inline Task<Status> open_window(Rank& rank, Bytebuffer& memory,
                                std::unique_ptr<rma::Window>* window) {
    rma::Wanted wanted;
    wanted.base = memory.address();
    wanted.bytes = memory.bytes();
    Status made = co_await open_window(rank, wanted, window);
    co_return made;
}

inline Task<Status> open_dynamic_window(Rank& rank, std::unique_ptr<rma::Window>* window) {
    rma::Wanted wanted;
    wanted.flavor = rma::Flavor::dynamic;
    Status made = co_await open_window(rank, wanted, window);
    co_return made;
}

// All bytes of a run, or 512 of each 1024.
inline const layout::Layout& bytes_layout(bool strided) {
    static const layout::Layout byte = layout::contiguous_layout(1);
    static const layout::Block half[] = {{0, 512}};
    static const layout::Layout rows = layout::listed_layout(1024, half);
    return strided ? rows : byte;
}

// `bytes` of the run at `offset` of both buffers, strided or not at either end. An accumulate adds
// 64-bit numbers.
struct Part {
    rma::Verb verb = rma::Verb::put;
    int target = 1;
    Bytes offset = 0, bytes = 0;
    bool strided_here = false, strided_there = false;
    std::uint64_t base = 0;  // of a dynamic window: where the target's buffer is there
};

inline Result<rma::Access> access_to(Rank& rank, Bytebuffer& origin, const Part& part) {
    rma::Access access;
    access.verb = part.verb;
    access.target = part.target;
    const layout::Layout& here = bytes_layout(part.strided_here);
    access.layout = &bytes_layout(part.strided_there);
    access.origin.buffer = {origin.address() + part.offset, part.bytes / here.size, &here};
    Result<device::Location> location = rank.transfer.locate(access.origin.buffer);
    GANTRY_TRY(location.status());
    access.origin.location = *location;
    access.displacement = static_cast<std::int64_t>(part.base + part.offset);
    access.count = part.bytes / access.layout->size;
    access.bytes = part.bytes;
    access.items = rma::items_of(layout::Element::uint64);
    access.operation = layout::Operation::sum;
    return access;
}

inline Status begin(Rank& rank, rma::Window& window, Bytebuffer& origin, const Part& part,
                    Completion* done = nullptr) {
    Result<rma::Access> access = access_to(rank, origin, part);
    GANTRY_TRY(access.status());
    return window.begin(*access, done).status();
}

}  // namespace gantry::world
