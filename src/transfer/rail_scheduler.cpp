// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/rail_scheduler.hpp"

#include "base/log.hpp"
#include "base/scope.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::transfer {
namespace {

// What the transport knows of the rails by now: some failed, some have come back.
void look_at_rails(Endpoint& peer) {
    RailShares& rails = *peer.rails;
    const std::uint32_t up = peer.transport->rails_up(peer.rank);
    for (int rail = 0; rail < rails.rails(); ++rail) {
        const bool is_up = (up >> rail & 1) != 0;
        if (is_up && !rails.is_up(rail)) rails.regain(rail);
        if (!is_up && rails.is_up(rail)) rails.lose(rail);
    }
}

Status no_rail(const Endpoint& peer) {
    if (!peer.lost.ok()) return peer.lost;
    return failure(MPI_ERR_PROC_ABORTED, "a put to rank {}: all of its {} rails failed", peer.rank,
                   peer.rails->rails());
}

}  // namespace

RailScheduler::RailScheduler(const config::Config& config)
    : rules_{.policy = rail_policy(config.rail_policy).value_or(RailPolicy::weighted),
             .small_max = config.rail_small,
             .stripe = std::max<Bytes>(1, config.rail_stripe)} {}

Task<Status> RailScheduler::put(Executor& executor, Endpoint& peer, Put put) {
    look_at_rails(peer);
    if (peer.rails->up() == 0) co_return no_rail(peer);
    const Stripes stripes = peer.rails->divide(put.bytes, put.most_rails, rules_);
    if (stripes.all().size() == 1) {
        Status carried = co_await carry(executor, peer, put, stripes.all().front());
        co_return carried;
    }
    Scope parts(executor);
    for (const Stripe& stripe : stripes.all())
        parts.spawn(carry(executor, peer, put, stripe));
    Status joined = co_await parts.join(executor);
    co_return joined;
}

Task<Status> RailScheduler::carry(Executor& executor, Endpoint& peer, Put put, Stripe stripe) {
    while (true) {
        RailShares& rails = *peer.rails;
        rails.begin(stripe.rail, stripe.bytes, executor.clock().now());
        Completion arrived(executor);
        peer.transport->put(peer.rank, stripe.rail, put.source + stripe.offset, stripe.bytes,
                            put.from, *put.key, put.offset + stripe.offset, arrived);
        Status status = co_await arrived;
        rails.end(stripe.rail, stripe.bytes, executor.clock().now(), status.ok());
        if (status.ok()) co_return status;
        look_at_rails(peer);
        // An error of a rail that still works is the put's own: a damaged key, memory that is gone.
        if (rails.is_up(stripe.rail) || !peer.lost.ok()) co_return status;
        if (rails.up() == 0) co_return no_rail(peer);
        const int lost = stripe.rail;
        stripe.rail = rails.divide(stripe.bytes, 1, rules_).all().front().rail;
        ++repeats_;
        log::info("transfer: rail {} to rank {} failed, {} bytes go again over rail {}", lost,
                  peer.rank, stripe.bytes, stripe.rail);
    }
}

std::string RailScheduler::sentence(const Endpoint& peer, std::string_view names) {
    const RailShares& rails = *peer.rails;
    const std::uint32_t up = peer.transport->rails_up(peer.rank);
    Bytes all = 0;
    std::uint64_t again = 0;
    for (int rail = 0; rail < rails.rails(); ++rail) {
        all += rails.carried(rail);
        again += rails.failed_parts(rail);
    }
    const std::string why = peer.transport->why_home_rail();
    const std::string home = fmt::format(" (home{}{})", why.empty() ? "" : ": ", why);
    std::string text = fmt::format("rails to rank {}:", peer.rank);
    for (int rail = 0; rail < rails.rails(); ++rail) {
        const std::size_t end = std::min(names.find(','), names.size());
        const std::string_view name = names.substr(0, end);
        names.remove_prefix(std::min(end + 1, names.size()));
        text += fmt::format("{} {}{}: ", rail > 0 ? ";" : "",
                            name.empty() ? fmt::format("rail {}", rail) : std::string(name),
                            rail == rails.home_rail() ? home : "");
        text += all == 0 ? "no puts"
                         : fmt::format("{:.0f} % of the bytes of puts",
                                       100 * static_cast<double>(rails.carried(rail)) /
                                           static_cast<double>(all));
        if (rails.is_measured(rail)) text += fmt::format(" at {:.2g} GB/s", rails.rate(rail) / 1e9);
        if (rails.losses(rail) > 0) text += fmt::format(", failures: {}", rails.losses(rail));
        if ((up >> rail & 1) == 0) text += ", down";
    }
    return text + fmt::format("; parts of puts that went again: {}", again);
}

}  // namespace gantry::transfer
