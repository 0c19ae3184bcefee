// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/programs.hpp"

#include "p2p/wire.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace gantry::world {
namespace {

const layout::Layout& one_byte() {
    static const layout::Layout layout = layout::contiguous_layout(1);
    return layout;
}

constexpr std::byte kClear{0xEE};

// A part of a pattern, made at once: filling and checking is most of what a world test computes.
using Pattern = std::array<std::uint64_t, 64>;

Pattern pattern(std::uint64_t key, Bytes at) {
    Pattern words;
    const std::uint64_t first = at / sizeof words * words.size() + key * 131;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::uint64_t mixed = (first + i) * 0x9e3779b97f4a7c15u;
        words[i] = mixed ^ mixed >> 32;
    }
    return words;
}

}  // namespace

std::string_view name(Place place) {
    switch (place) {
        case Place::host: return "host";
        case Place::pinned: return "pinned";
        case Place::device: return "device";
    }
    return "?";
}

void fill_pattern(std::byte* memory, std::uint64_t key, Bytes bytes) {
    for (Bytes at = 0; at < bytes; at += sizeof(Pattern)) {
        const Pattern words = pattern(key, at);
        std::memcpy(memory + at, words.data(), std::min(sizeof words, bytes - at));
    }
}

bool holds_pattern(const std::byte* memory, std::uint64_t key, Bytes bytes) {
    for (Bytes at = 0; at < bytes; at += sizeof(Pattern)) {
        const Pattern words = pattern(key, at);
        if (std::memcmp(memory + at, words.data(), std::min(sizeof words, bytes - at)) != 0)
            return false;
    }
    return true;
}

Bytebuffer::Bytebuffer(Rank& rank, Place place, Bytes bytes, int gpu, device::IpcKind ipc)
    : rank_(rank), place_(place), bytes_(bytes) {
    if (place == Place::host) {
        host_.resize(bytes);
        address_ = host_.data();
    } else {
        const auto kind =
            place == Place::device ? device::MemoryKind::device : device::MemoryKind::pinned;
        address_ = static_cast<std::byte*>(rank.device.allocate(gpu, bytes, kind, ipc));
    }
    clear();
}

Bytebuffer::~Bytebuffer() {
    // Host memory, page-locked or not, that goes is noticed by the network.
    if (place_ != Place::device) rank_.world.network().end(rank_.number).unmapped(address_, bytes_);
    if (place_ != Place::host) rank_.device.free(address_);
}

p2p::Buffer Bytebuffer::part(Bytes offset, Bytes bytes) {
    return {address_ + offset, bytes, &one_byte()};
}

std::byte* Bytebuffer::stored() {
    return place_ == Place::host ? address_ : rank_.device.behind(address_, bytes_);
}

void Bytebuffer::fill(std::uint64_t key) {
    fill_pattern(stored(), key, bytes_);
}

void Bytebuffer::clear() {
    std::fill_n(stored(), bytes_, kClear);
}

bool Bytebuffer::holds(std::uint64_t key, Bytes bytes) {
    const std::byte* all = stored();
    return holds_pattern(all, key, bytes) &&
           std::all_of(all + bytes, all + bytes_, [](std::byte is) { return is == kClear; });
}

Task<Received> finish(Executor& executor, Rank& rank, Result<p2p::Request*> request) {
    Received received;
    if (!request.ok()) {
        received.status = request.status();
        co_return received;
    }
    p2p::Request* started = request.value();
    received.status = co_await started->finished(executor);
    received.outcome = started->outcome;
    rank.messenger.release(started);
    co_return received;
}

Task<Status> send(Rank& rank, p2p::Buffer buffer, int to, int tag, p2p::SendMode mode) {
    Received ended =
        co_await finish(rank.executor, rank, rank.messenger.isend(rank.all, buffer, to, tag, mode));
    co_return ended.status;
}

Task<Received> receive(Rank& rank, p2p::Buffer buffer, int from, int tag) {
    Received ended =
        co_await finish(rank.executor, rank, rank.messenger.ireceive(rank.all, buffer, from, tag));
    co_return ended;
}

Task<Status> pass_on(Rank& rank, Bytebuffer& buffer, std::uint64_t key) {
    if (rank.number == 0) {
        buffer.fill(key);
        Received token = co_await receive(rank, kNothing, 1, 1);
        GANTRY_CO_TRY(token.status);
        Status sent = co_await send(rank, buffer.whole(), 1, 0);
        GANTRY_CO_TRY(sent);
    } else {
        Result<p2p::Request*> posted = rank.messenger.ireceive(rank.all, buffer.whole(), 0, 0);
        Status token = co_await send(rank, kNothing, 0, 1);
        GANTRY_CO_TRY(token);
        Received received = co_await finish(rank.executor, rank, std::move(posted));
        GANTRY_CO_TRY(received.status);
        WORLD_CHECK(buffer.holds(key, buffer.bytes()));
    }
    co_return success();
}

Task<Status> pass_on_at_second_try(Rank& rank, Bytebuffer& buffer, std::uint64_t key,
                                   bool& refuse) {
    if (rank.number == 0) {
        refuse = true;
        Status status = co_await send(rank, buffer.whole(), 1, 0);
        refuse = false;
        WORLD_CHECK(!status.ok());
    }
    Status passed = co_await pass_on(rank, buffer, key);
    co_return passed;
}

bool is_request(transport::MessageKind kind) {
    return kind == p2p::wire::kRts || kind == p2p::wire::kRtsFromTemplate ||
           kind == p2p::wire::kRtsOtherBuffer;
}

Task<Status> meet(Rank& rank, int tag) {
    const int ranks = rank.all.size();
    for (int distance = 1; distance < ranks; distance *= 2) {
        const int to = (rank.number + distance) % ranks;
        const int from = (rank.number + ranks - distance) % ranks;
        Result<p2p::Request*> sending =
            rank.messenger.isend(rank.all, {}, to, tag, p2p::SendMode::standard);
        Received received = co_await receive(rank, kNothing, from, tag);
        Received sent = co_await finish(rank.executor, rank, std::move(sending));
        GANTRY_CO_TRY(received.status);
        GANTRY_CO_TRY(sent.status);
    }
    co_return success();
}

Status not_so(const char* file, int line, const char* condition) {
    return failure(MPI_ERR_OTHER, "{}:{}: not so: {}", file, line, condition);
}

}  // namespace gantry::world
