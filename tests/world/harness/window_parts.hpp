// SPDX-License-Identifier: BSD-3-Clause
//
// Windows of programs of world tests, and puts and gets of parts of them, or of all.
#pragma once

#include "rma/windows.hpp"
#include "world/harness/programs.hpp"

#include <algorithm>
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

// Rank 0 puts all of a buffer at rank 1, in pieces of so many bytes (0: in one), and reads it again.
inline Task<Status> put_and_get(Rank& rank, Bytes bytes, Place place, Place of_window = Place::host,
                                Bytes piece = 0) {
    if (piece == 0) piece = bytes;
    Bytebuffer memory(rank, of_window, bytes), origin(rank, place, bytes),
        again(rank, place, bytes);
    origin.fill(7);
    std::unique_ptr<rma::Window> window;
    Status status = co_await open_window(rank, memory, &window);
    GANTRY_CO_TRY(status);
    if (rank.number == 0) {
        status = co_await window->lock(rank.executor, 1, rma::Lock::shared);
        GANTRY_CO_TRY(status);
        constexpr rma::Verb kBoth[] = {rma::Verb::put, rma::Verb::get};
        for (const rma::Verb verb : kBoth) {
            for (Bytes offset = 0; offset < bytes; offset += piece)
                GANTRY_CO_TRY(begin(
                    rank, *window, verb == rma::Verb::put ? origin : again,
                    {.verb = verb, .offset = offset, .bytes = std::min(piece, bytes - offset)}));
            status = co_await window->flush(rank.executor, 1);
            GANTRY_CO_TRY(status);
        }
        status = co_await window->unlock(rank.executor, 1);
        GANTRY_CO_TRY(status);
        WORLD_CHECK(again.holds(7, bytes));
    }
    status = co_await window->close(rank.executor);
    GANTRY_CO_TRY(status);
    if (rank.number == 1) WORLD_CHECK(memory.holds(7, bytes));
    co_return success();
}

// What one put, and one get, of all of a buffer at rank 1 takes with its flush: of so many of each, one
// behind the other, in an epoch that is open.
struct FlushedTimes {
    Nanoseconds put = 0, get = 0;
};
inline Task<Status> time_flushed(Rank& rank, rma::Window& window, Bytebuffer& origin, int times,
                                 FlushedTimes* found) {
    constexpr rma::Verb kBoth[] = {rma::Verb::put, rma::Verb::get};
    for (const rma::Verb verb : kBoth) {
        const Nanoseconds start = rank.processor.now();
        for (int i = 0; i < times; ++i) {
            GANTRY_CO_TRY(begin(rank, window, origin, {.verb = verb, .bytes = origin.bytes()}));
            Status flushed = co_await window.flush(rank.executor, 1);
            GANTRY_CO_TRY(flushed);
        }
        (verb == rma::Verb::put ? found->put : found->get) = (rank.processor.now() - start) / times;
    }
    co_return success();
}

}  // namespace gantry::world
