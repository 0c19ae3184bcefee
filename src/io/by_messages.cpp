// SPDX-License-Identifier: BSD-3-Clause
//
// The exchange of a collective read or write by messages: bytes travel from the program's buffer, of any layout
// and on any device, to where they belong in the window, or back: messages take both layouts as they are. While
// one window is exchanged the other one is with the file.
#include "io/agree.hpp"
#include "io/two_phase.hpp"

#include <deque>

namespace gantry::io {
namespace {

// Data bytes [first, first + bytes) of the program's buffer as a message has them.
p2p::Buffer part_of_buffer(const transfer::Buffer& whole, Bytes first, Bytes bytes,
                           std::deque<layout::Layout>& layouts) {
    if (whole.contiguous()) return transfer::bytes_buffer(whole.data() + first, bytes);
    layout::FormBuilder builder;
    layout::RunWalk runs(*whole.layout, first, bytes);
    for (layout::Block run; runs.next(run);)
        builder.add_run(run.offset, run.bytes);
    layouts.emplace_back(builder.finish(), 0);
    return {whole.address, 1, &layouts.back()};
}

// The messages of one round: window is null where this rank is no aggregator.
Task<Status> exchange(Executor& executor, TwoPhase& all, Window* window, std::int64_t round) {
    std::deque<layout::Layout> layouts;
    coll::InFlight messages(all.run);
    // A window that could not be read is told in place of its bytes.
    if (window != nullptr && window->failed && !all.writes())
        all.run.note(failure(MPI_ERR_OTHER, "the window was not read"));
    if (window != nullptr)
        for (std::size_t rank = 0; rank < window->layouts.size(); ++rank) {
            const layout::Layout& layout = window->layouts[rank];
            if (layout.size == 0) continue;
            const p2p::Buffer bytes{window->memory, 1, &layout};
            if (all.writes())
                messages.receive(bytes, static_cast<int>(rank));
            else
                messages.send(bytes, static_cast<int>(rank));
        }
    for (std::size_t part = 0; part < all.mine.size(); ++part) {
        const Interval place = all.window(part, round);
        Share& share = all.mine[part];
        const Bytes bytes = share.strips.take(place.end, 0, nullptr, nullptr);
        if (bytes == 0) continue;
        const p2p::Buffer buffer = part_of_buffer(all.access.buffer, share.first, bytes, layouts);
        share.first += bytes;
        if (all.writes())
            messages.send(buffer, all.plan.aggregators[part]);
        else
            messages.receive(buffer, all.plan.aggregators[part]);
    }
    Status ended = co_await messages.all(executor);
    co_return ended;
}

Task<Status> write_rounds(Executor& executor, TwoPhase& all, Scope& files) {
    for (std::int64_t round = 0; round < all.rounds(); ++round) {
        Window* window = all.aggregator >= 0 ? &all.windows[round % kWindows] : nullptr;
        if (window != nullptr) {
            Status written = co_await window->busy.room(executor);
            prepare(all, *window, round, Wanted::layouts);
        }
        Status exchanged = co_await exchange(executor, all, window, round);
        // What did not come whole is not written.
        if (window != nullptr && exchanged.ok() && !window->intervals.empty())
            files.spawn(move_window(executor, all, *window));
    }
    co_return success();
}

Task<Status> read_rounds(Executor& executor, TwoPhase& all, Scope& files) {
    const std::int64_t rounds = all.rounds();
    const bool aggregates = all.aggregator >= 0;
    if (aggregates) {
        prepare(all, all.windows[0], 0, Wanted::layouts);
        files.spawn(move_window(executor, all, all.windows[0]));
    }
    for (std::int64_t round = 0; round < rounds; ++round) {
        Window* window = aggregates ? &all.windows[round % kWindows] : nullptr;
        if (window != nullptr) {
            Status read = co_await window->busy.room(executor);
            if (round + 1 < rounds) {
                Window& ahead = all.windows[(round + 1) % kWindows];
                prepare(all, ahead, round + 1, Wanted::layouts);
                files.spawn(move_window(executor, all, ahead));
            }
        }
        Status exchanged = co_await exchange(executor, all, window, round);
    }
    co_return success();
}

// Memory of windows, which goes back to the file.
struct OwnWindows {
    explicit OwnWindows(File& of) : file(of) {}
    ~OwnWindows() {
        for (WindowMemory& each : memory)
            file.spare_windows.give(std::move(each));
    }
    OwnWindows(const OwnWindows&) = delete;
    OwnWindows& operator=(const OwnWindows&) = delete;
    File& file;
    WindowMemory memory[kWindows];
};

Status make_windows(TwoPhase& all, OwnWindows& own) {
    for (int i = 0; i < kWindows; ++i) {
        own.memory[i] = all.file.spare_windows.take(all.plan.window);
        all.windows[i].memory = own.memory[i].bytes.get();
        if (all.windows[i].memory == nullptr)
            return failure(MPI_ERR_NO_MEM,
                           "out of memory for a window of {} bytes (hint cb_buffer_size)",
                           all.plan.window);
    }
    return success();
}

}  // namespace

Task<Status> exchange_by_messages(Executor& executor, TwoPhase& all) {
    OwnWindows own(all.file);
    Status ready = all.run.status();
    if (ready.ok() && all.aggregator >= 0) ready = make_windows(all, own);
    Status agreed = co_await agree(executor, all.team, ready);
    GANTRY_CO_TRY(agreed);
    Scope files(executor);
    Status told;
    if (all.writes())
        told = co_await write_rounds(executor, all, files);
    else
        told = co_await read_rounds(executor, all, files);
    Status moved = co_await files.join(executor);
    co_return moved.ok() ? all.run.status() : moved;
}

}  // namespace gantry::io
