// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/outsiders.hpp"

#include "base/log.hpp"
#include "base/yield.hpp"
#include "mpi/engine/engine.hpp"

#include <algorithm>

namespace gantry::mpi {

std::size_t Outsiders::index(int number) const {
    return static_cast<std::size_t>(number - engine_.size());
}

bool Outsiders::among(std::span<const int> peers) const {
    return any() && std::ranges::any_of(peers, [this](int peer) { return peer >= engine_.size(); });
}

Identity Outsiders::identity(int peer) const {
    if (peer < engine_.size()) return {engine_.job_identity(), peer};
    return outsiders_[index(peer)].identity;
}

int Outsiders::find(const Identity& identity) const {
    if (identity.job == engine_.job_identity()) return identity.rank;
    for (std::size_t i = 0; i < outsiders_.size(); ++i)
        if (outsiders_[i].by != nullptr && outsiders_[i].identity == identity)
            return engine_.size() + static_cast<int>(i);
    return -1;
}

int Outsiders::node(int peer) const {
    const std::vector<int>& nodes = engine_.job().nodes();
    // All are reached by shared memory.
    return nodes[static_cast<std::size_t>(peer < engine_.size() ? peer : engine_.rank())];
}

int Outsiders::reserve() {
    const int number = engine_.transfer().endpoints.add();
    if (index(number) >= outsiders_.size()) outsiders_.resize(index(number) + 1);
    engine_.messenger().grow();
    return number;
}

void Outsiders::give_up(int number) {
    engine_.messenger().forget(number);
}

void Outsiders::admit(int number, const Identity& identity, std::shared_ptr<Connection> by) {
    ++by->outsiders;
    at(number) = {identity, 0, std::move(by)};
    ++live_;
}

void Outsiders::use(std::span<const int> peers) {
    for (const int peer : peers)
        if (peer >= engine_.size()) ++at(peer).communicators;
}

void Outsiders::let_go(std::span<const int> peers) {
    for (const int peer : peers)
        if (peer >= engine_.size()) --at(peer).communicators;
}

void Outsiders::prepare_to_part(std::span<const int> peers) {
    for (const int peer : peers)
        if (peer >= engine_.size() && at(peer).communicators == 1)
            engine_.messenger().withdraw_memory(peer);
}

bool Outsiders::is_quiet(const Connection& connection) const {
    for (std::size_t i = 0; i < outsiders_.size(); ++i)
        if (outsiders_[i].by.get() == &connection &&
            !engine_.messenger().is_quiet(engine_.size() + static_cast<int>(i)))
            return false;
    return true;
}

Task<Status> Outsiders::close(Executor& executor, std::shared_ptr<Connection> connection) {
    connection->closing = true;
    while (!is_quiet(*connection))
        co_await Yield(executor);
    // What the others sent before they met us for the last time is there.
    for (const auto& transport : connection->transports)
        while (transport->progress() > 0) {
        }
    for (const auto& transport : connection->transports) {
        Status closed = co_await transport->close(executor);
        if (!closed.ok()) log::info("mpi: closing {}: {}", transport->name(), closed.text());
    }
    for (std::size_t i = 0; i < outsiders_.size(); ++i) {
        if (outsiders_[i].by != connection) continue;
        engine_.messenger().forget(engine_.size() + static_cast<int>(i));
        outsiders_[i] = {};
        --live_;
    }
    for (const auto& transport : connection->transports)
        engine_.transfer().remove_transport(*transport);
    co_return success();
}

Task<Status> Outsiders::close_unused(Executor& executor) {
    while (true) {
        const auto unused = std::ranges::find_if(outsiders_, [this](const Outsider& candidate) {
            return candidate.by != nullptr && !candidate.by->closing &&
                   std::ranges::none_of(outsiders_, [&candidate](const Outsider& each) {
                       return each.by == candidate.by && each.communicators > 0;
                   });
        });
        if (unused == outsiders_.end()) co_return success();
        Status closed = co_await close(executor, unused->by);
        GANTRY_CO_TRY(closed);
    }
}

Task<Status> Outsiders::close_all(Executor& executor) {
    while (any()) {
        const auto open = std::ranges::find_if(outsiders_, [](const Outsider& candidate) {
            return candidate.by != nullptr && !candidate.by->closing;
        });
        if (open == outsiders_.end()) co_return success();
        Status closed = co_await close(executor, open->by);
        GANTRY_CO_TRY(closed);
    }
    co_return success();
}

}  // namespace gantry::mpi
