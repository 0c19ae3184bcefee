// SPDX-License-Identifier: BSD-3-Clause
//
// Small puts at one target wait for each other and travel as one message (79 in docs/wire.md). They
// leave before any other message to that target, and when the program waits for them: a flush, the end
// of an epoch.
#include "rma/windows.hpp"

#include <algorithm>
#include <cstring>

namespace gantry::rma {

bool Outbound::joins_batch(const Access& access, const wire::Span& span) const {
    if (access.verb != Verb::put || span.layout != 0) return false;
    plan::WindowQuestion question;
    question.bytes = access.bytes;
    return plan::window_way(question, window.ways.ways_to(access.target)) == plan::WindowWay::batch;
}

Status Outbound::add_to_batch(int of_rank, const wire::Span& span, const std::byte* bytes) {
    Target& of = target(of_rank);
    const Bytes room = std::min(windows.context.config.window_batch,
                                windows.context.endpoints.to(of.peer).facts.eager_max);
    const wire::PutRow row{span.address, static_cast<std::uint32_t>(span.bytes), 0};
    if (of.batch.size() + sizeof row + span.bytes > room) GANTRY_TRY(ship_batch(of_rank));
    const auto* head = reinterpret_cast<const std::byte*>(&row);
    of.batch.insert(of.batch.end(), head, head + sizeof row);
    of.batch.insert(of.batch.end(), bytes, bytes + span.bytes);
    of.batch_bytes += span.bytes;
    return success();
}

Status Outbound::ship_batch(int of_rank) {
    Target& of = target(of_rank);
    if (of.batch.empty()) return success();
    const std::vector<std::byte> batch = std::exchange(of.batch, {});
    const Bytes bytes = std::exchange(of.batch_bytes, 0);
    GANTRY_TRY(window.send(of_rank, wire::kPuts, wire::Puts{}, batch));
    ++of.sent;
    of.sent_bytes += bytes;
    return success();
}

namespace {

// The rows of a batch, one after the other; false: there is none.
struct Rows {
    transport::ConstSpan left;
    wire::Span span{};
    const std::byte* bytes = nullptr;

    bool next() {
        wire::PutRow row{};
        if (left.size() < sizeof row) return false;
        std::memcpy(&row, left.data(), sizeof row);
        left = left.subspan(sizeof row);
        if (left.size() < row.bytes) return false;
        span = {row.address, row.bytes, 0, row.bytes, 0};
        bytes = left.data();
        left = left.subspan(row.bytes);
        return true;
    }
};

}  // namespace

// False: some of it goes to a device. What is written by then is written again.
bool Inbound::serve_puts(int from, transport::ConstSpan payload) {
    Status first;
    Bytes all = 0;
    for (Rows rows{payload}; rows.next(); all += rows.span.bytes) {
        Result<Region> region = region_of(from, rows.span);
        if (region.ok() && !region->on_host()) return false;
        Status written = region.ok() ? write_host(*region, rows.bytes) : region.status();
        if (first.ok() && !written.ok()) first = std::move(written);
    }
    served(from, first, all);
    return true;
}

Task<Status> Inbound::serve_puts_slowly(Executor& executor, int from,
                                        transport::ConstSpan payload) {
    Status first;
    Bytes all = 0;
    for (Rows rows{payload}; rows.next(); all += rows.span.bytes) {
        Result<Region> region = region_of(from, rows.span);
        Status written = region.status();
        if (region.ok()) written = co_await write(executor, windows.context, *region, rows.bytes);
        if (first.ok() && !written.ok()) first = std::move(written);
    }
    served(from, first, all);
    co_return first;
}

}  // namespace gantry::rma
