// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of programs of world tests, and puts and gets of parts of them.
#pragma once

#include "rma/windows.hpp"
#include "world/harness/programs.hpp"

#include <memory>

namespace gantry::world {

inline Task<Status> open_window(Executor& executor, Rank& rank, Bytebuffer& memory, bool dynamic,
                                std::unique_ptr<rma::Window>* window) {
    p2p::Group group = rank.all;
    group.context = 77 | p2p::kCollectiveContext;
    rma::Wanted wanted;
    if (dynamic) {
        wanted.flavor = rma::Flavor::dynamic;
    } else {
        wanted.base = memory.address();
        wanted.bytes = memory.bytes();
    }
    Status made = co_await rank.windows.create(executor, group, wanted, window);
    GANTRY_CO_TRY(made);
    if (dynamic) made = (*window)->attach(memory.address(), memory.bytes());
    co_return made;
}

// All bytes of a run, or 512 of each 1024.
inline const layout::Layout& bytes_layout(bool strided) {
    static const layout::Layout byte = layout::contiguous_layout(1);
    static const layout::Block half[] = {{0, 512}};
    static const layout::Layout rows = layout::listed_layout(1024, half);
    return strided ? rows : byte;
}

// `bytes` of the run at `offset` of both buffers, strided or not at either end.
struct Part {
    rma::Verb verb = rma::Verb::put;
    int target = 1;
    Bytes offset = 0, bytes = 0;
    bool strided_here = false, strided_there = false;
};

inline Result<rma::Access> access_to(Rank& rank, Bytebuffer& origin, std::uint64_t base,
                                     const Part& part) {
    rma::Access access;
    access.verb = part.verb;
    access.target = part.target;
    const layout::Layout& here = bytes_layout(part.strided_here);
    access.layout = &bytes_layout(part.strided_there);
    access.origin.buffer = {origin.address() + part.offset, part.bytes / here.size, &here};
    Result<device::Location> location = rank.transfer.locate(access.origin.buffer);
    GANTRY_TRY(location.status());
    access.origin.location = *location;
    access.displacement = static_cast<std::int64_t>(base + part.offset);
    access.count = part.bytes / access.layout->size;
    access.bytes = part.bytes;
    return access;
}

inline Status begin(Rank& rank, rma::Window& window, Bytebuffer& origin, const Part& part,
                    Completion* done = nullptr, std::uint64_t base = 0) {
    Result<rma::Access> access = access_to(rank, origin, base, part);
    GANTRY_TRY(access.status());
    return window.begin(*access, done).status();
}

}  // namespace gantry::world
