// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/host_copies.hpp"

#include "base/streaming_copy.hpp"

namespace gantry::transfer {

bool HostCopies::start(const Copy& copy, Completion& done) {
    const unsigned next = next_.load(std::memory_order_relaxed);
    Cell& cell = cells_[next % cells_.size()];
    // Pairs with nothing: only this thread makes a cell free.
    if (cell.state.load(std::memory_order_relaxed) != State::free) return false;
    cell.copy = copy;
    cell.done = &done;
    cell.state.store(State::posted, std::memory_order_release);  // pairs with take()
    next_.store(next + 1, std::memory_order_relaxed);            // only a hint where to look first
    ++under_way_;
    helper_->call();
    return true;
}

// The oldest one, as far as this thread knows.
HostCopies::Cell* HostCopies::take() {
    const unsigned oldest = next_.load(std::memory_order_relaxed);
    for (unsigned i = 0; i < cells_.size(); ++i) {
        Cell& cell = cells_[(oldest + i) % cells_.size()];
        State expected = State::posted;
        if (cell.state.load(std::memory_order_relaxed) == State::posted &&
            cell.state.compare_exchange_strong(expected, State::taken, std::memory_order_acquire,
                                               std::memory_order_relaxed))
            return &cell;
    }
    return nullptr;
}

bool HostCopies::help() {
    Cell* cell = take();
    if (cell == nullptr) return false;
    streaming_copy(cell->copy.to, cell->copy.from, cell->copy.bytes);
    cell->state.store(State::done, std::memory_order_release);  // pairs with progress()
    return true;
}

int HostCopies::turn() {
    int ended = 0;
    const auto end = [&](Cell& cell, std::uint64_t& count) {
        Completion* done = cell.done;
        cell.state.store(State::free, std::memory_order_relaxed);
        --under_way_;
        ++count;
        ++ended;
        done->complete(success());
    };
    for (Cell& cell : cells_)
        if (cell.state.load(std::memory_order_acquire) == State::done) end(cell, counts_.helped);
    if (Cell* cell = take()) {
        streaming_copy(cell->copy.to, cell->copy.from, cell->copy.bytes);
        end(*cell, counts_.own);
    }
    return ended;
}

}  // namespace gantry::transfer
