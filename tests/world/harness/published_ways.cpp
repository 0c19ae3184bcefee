// SPDX-License-Identifier: BSD-3-Clause
#include "world/harness/published_ways.hpp"

#include "layout/rows.hpp"
#include "world/harness/programs.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <sstream>

namespace gantry::world {
namespace {

constexpr Bytes kBytes = 4 * kMiB;
constexpr int kRounds = 4, kTag = 1;

enum class Method : std::uint8_t { strided_copy, by_hand, gantry };

struct Setup {
    Method method = Method::gantry;
    Bytes bytes = kBytes, width = kBytes;  // width as bytes: contiguous
    Bytes block = kBytes;
    int gpus = 1, warm_ups = 3;
    Nanoseconds latency = 0;  // the result

    Bytes pitch() const { return width == bytes ? width : 2 * width; }
    Bytes rows() const { return bytes / width; }
};

struct Buffers {
    Buffers(Rank& its_rank, const Setup& its_setup)
        : rank(its_rank),
          setup(its_setup),
          gpu(setup.gpus > 1 ? rank.number : 0),
          field(rank, Place::device, setup.pitch() * setup.rows(), gpu),
          packed(rank, Place::device, setup.bytes, gpu),
          host(rank, Place::pinned, setup.bytes) {
        layout::FormBuilder row;
        row.add_run(0, setup.width);
        const auto pitch = static_cast<std::ptrdiff_t>(setup.pitch());
        vector = layout::Layout(layout::repeated(row.finish(), setup.rows(), pitch),
                                pitch * static_cast<std::ptrdiff_t>(setup.rows()));
    }
    operator Executor&() { return rank.executor; }
    // The rows of a block, between the field and packed memory.
    device::Rows rows_out(Bytes bytes) const {
        device::Rows rows;
        rows.width = setup.width;
        rows.count = bytes / setup.width;
        rows.source_pitch = setup.pitch();
        rows.destination_pitch = setup.width;
        return rows;
    }
    device::Rows rows_in(Bytes bytes) const {
        device::Rows rows = rows_out(bytes);
        std::swap(rows.source_pitch, rows.destination_pitch);
        return rows;
    }
    std::byte* row(Bytes at) { return field.address() + at / setup.width * setup.pitch(); }

    Rank& rank;
    const Setup& setup;
    const int gpu;
    Bytebuffer field, packed, host;
    layout::Layout vector;
};

void start(Buffers& buffers, std::deque<Completion>& done, void* to, const void* from, Bytes bytes,
           device::Engine engine, const device::Rows* rows = nullptr) {
    device::Copy copy{to, from, bytes, buffers.gpu, engine};
    if (rows != nullptr) copy.rows = {rows, 1};
    buffers.rank.device.copy(copy, done.emplace_back(buffers.rank.executor));
}

Task<Status> push_by_hand(Buffers& buffers) {
    Rank& rank = buffers.rank;
    const Bytes all = buffers.setup.bytes, block = buffers.setup.block;
    std::deque<Completion> packed, copied;
    std::vector<Result<p2p::Request*>> sending;
    for (Bytes at = 0; at < all; at += block) {
        const device::Rows rows = buffers.rows_out(block);
        start(buffers, packed, buffers.packed.address() + at, buffers.row(at), block,
              device::Engine::kernel, &rows);
    }
    for (Bytes at = 0; at < all; at += block) {
        Completion& ready = packed[at / block];
        Status status = co_await ready;
        GANTRY_CO_TRY(status);
        start(buffers, copied, buffers.host.address() + at, buffers.packed.address() + at, block,
              device::Engine::d2h);
    }
    for (Bytes at = 0; at < all; at += block) {
        Completion& ready = copied[at / block];
        Status status = co_await ready;
        GANTRY_CO_TRY(status);
        sending.push_back(rank.messenger.isend(rank.all, buffers.host.part(at, block),
                                               1 - rank.number, kTag, p2p::SendMode::standard));
    }
    for (Result<p2p::Request*>& request : sending) {
        Received sent = co_await finish(rank.executor, rank, std::move(request));
        GANTRY_CO_TRY(sent.status);
    }
    co_return success();
}

Task<Status> pull_by_hand(Buffers& buffers) {
    Rank& rank = buffers.rank;
    const Bytes all = buffers.setup.bytes, block = buffers.setup.block;
    std::vector<Result<p2p::Request*>> receiving;
    std::deque<Completion> copied, unpacked;
    for (Bytes at = 0; at < all; at += block)
        receiving.push_back(
            rank.messenger.ireceive(rank.all, buffers.host.part(at, block), 1 - rank.number, kTag));
    for (Bytes at = 0; at < all; at += block) {
        Received got = co_await finish(rank.executor, rank, std::move(receiving[at / block]));
        GANTRY_CO_TRY(got.status);
        start(buffers, copied, buffers.packed.address() + at, buffers.host.address() + at, block,
              device::Engine::h2d);
    }
    for (Bytes at = 0; at < all; at += block) {
        Completion& ready = copied[at / block];
        Status status = co_await ready;
        GANTRY_CO_TRY(status);
        const device::Rows rows = buffers.rows_in(block);
        start(buffers, unpacked, buffers.row(at), buffers.packed.address() + at, block,
              device::Engine::kernel, &rows);
    }
    for (Completion& each : unpacked) {
        Status status = co_await each;
        GANTRY_CO_TRY(status);
    }
    co_return success();
}

// cudaMemcpy2D of everything, one way.
Task<Status> strided_copy(Buffers& buffers, device::Engine engine) {
    const bool out = engine == device::Engine::d2h;
    const Bytes all = buffers.setup.bytes;
    const device::Rows rows = out ? buffers.rows_out(all) : buffers.rows_in(all);
    std::deque<Completion> done;
    std::byte *field = buffers.field.address(), *host = buffers.host.address();
    start(buffers, done, out ? host : field, out ? field : host, all, engine, &rows);
    Completion& only = done.front();
    Status status = co_await only;
    co_return status;
}

Task<Status> push(Buffers& buffers) {
    Rank& rank = buffers.rank;
    if (buffers.setup.method == Method::by_hand) {
        Status status = co_await push_by_hand(buffers);
        co_return status;
    }
    p2p::Buffer message{buffers.field.address(), 1, &buffers.vector};
    if (buffers.setup.method == Method::strided_copy) {
        Status copied = co_await strided_copy(buffers, device::Engine::d2h);
        GANTRY_CO_TRY(copied);
        message = buffers.host.whole();
    }
    Status status = co_await send(rank, message, 1 - rank.number, kTag);
    co_return status;
}

Task<Status> pull(Buffers& buffers) {
    Rank& rank = buffers.rank;
    if (buffers.setup.method == Method::by_hand) {
        Status status = co_await pull_by_hand(buffers);
        co_return status;
    }
    const bool by_copy = buffers.setup.method == Method::strided_copy;
    p2p::Buffer message{buffers.field.address(), 1, &buffers.vector};
    if (by_copy) message = buffers.host.whole();
    Received got = co_await receive(rank, message, 1 - rank.number, kTag);
    GANTRY_CO_TRY(got.status);
    Status status = success();
    if (by_copy) status = co_await strided_copy(buffers, device::Engine::h2d);
    co_return status;
}

bool holds_rows(Buffers& buffers) {
    std::vector<std::byte> packed(buffers.setup.bytes);
    const std::byte* stored =
        buffers.rank.device.behind(buffers.field.address(), buffers.field.bytes());
    layout::pack(buffers.vector, stored, 0, packed.size(), packed.data());
    return holds_pattern(packed.data(), 3, packed.size());
}

Task<Status> ping_pong(Rank& rank, Setup& setup) {
    Buffers buffers(rank, setup);
    if (rank.number == 0) {
        std::vector<std::byte> packed(setup.bytes);
        fill_pattern(packed.data(), 3, packed.size());
        std::byte* stored = rank.device.behind(buffers.field.address(), buffers.field.bytes());
        layout::unpack(buffers.vector, stored, 0, packed.size(), packed.data());
    }
    Status met = co_await meet(rank, 9);
    GANTRY_CO_TRY(met);
    Nanoseconds begin = 0;
    for (int turn = 0; turn < 2 * (setup.warm_ups + kRounds); ++turn) {
        if (turn == 2 * setup.warm_ups) begin = rank.processor.now();
        const bool sends = turn % 2 == rank.number;
        Status status = success();
        if (sends)
            status = co_await push(buffers);
        else
            status = co_await pull(buffers);
        GANTRY_CO_TRY(status);
    }
    if (rank.number == 0) setup.latency = (rank.processor.now() - begin) / (2 * kRounds);
    WORLD_CHECK(holds_rows(buffers));
    co_return success();
}

Nanoseconds measure(Options options, Setup setup) {
    options.mechanisms = "all";
    World world(std::move(options));
    const Ending ending = world.run([&setup](Rank& rank) { return ping_pong(rank, setup); });
    if (!ending.good()) {
        std::ostringstream story;
        story << ending;
        std::fprintf(stderr, "the world of the published ways: %s\n", story.str().c_str());
        std::abort();
    }
    return setup.latency;
}

// A Sandy Bridge: a card that reads device memory is slower than the network, one that writes is not.
void sandy_bridge(model::Machine& machine) {
    machine.network.device_memory = true;
    machine.network.device_read = 1.0e9;
    machine.network.device_write = 5.2e9;
}
void two_gpus(model::Machine& machine) {
    machine.gpus_per_node = 2;
}
void two_mapped_gpus(model::Machine& machine) {
    machine.gpus_per_node = 2;
    machine.ipc = machine.peer_access = true;
}

template <class Both>
std::vector<TwoPaths> at_each_size(Both both) {
    std::vector<TwoPaths> all;
    for (Bytes bytes = 8; bytes <= kBytes; bytes *= bytes < kMiB ? 8 : 4)
        all.push_back(both(bytes));
    return all;
}

}  // namespace

PublishedVectors measure_vectors(Bytes width) {
    PublishedVectors times{.width = width};
    const auto timed = [width](Method method, Bytes block) {
        return measure({}, {.method = method, .width = width, .block = block});
    };
    times.strided_copy = timed(Method::strided_copy, kBytes);
    times.gantry = timed(Method::gantry, kBytes);
    for (Bytes block = 64 * kKiB; block <= kMiB; block *= 2) {
        const Nanoseconds time = timed(Method::by_hand, block);
        if (times.by_hand != 0 && times.by_hand <= time) continue;
        times.by_hand = time;
        times.block = block;
    }
    return times;
}

std::vector<TwoPaths> measure_gpudirect() {
    return at_each_size([](Bytes bytes) {
        const Setup setup{.bytes = bytes, .width = bytes, .block = bytes};
        return TwoPaths{bytes, measure({.change_machine = &sandy_bridge}, setup),
                        measure({}, setup)};
    });
}

std::vector<TwoPaths> measure_ipc() {
    return at_each_size([](Bytes bytes) {
        // Memory of a peer is mapped when enough messages have gone to repay that.
        const Setup setup{
            .bytes = bytes, .width = bytes, .block = bytes, .gpus = 2, .warm_ups = 80};
        return TwoPaths{bytes,
                        measure({.ranks_per_node = 2, .change_machine = &two_mapped_gpus}, setup),
                        measure({.ranks_per_node = 2, .change_machine = &two_gpus}, setup)};
    });
}

}  // namespace gantry::world
