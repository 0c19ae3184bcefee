// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/bridge.hpp"

#include "coll/exchange.hpp"
#include "transfer/buffer.hpp"

namespace gantry::mpi {
namespace {

// What progress() asks until a letter is there.
struct Awaited {
    job::Letters* letters;
    std::string* text;
    Status status;
    static bool look(void* self) {
        auto& awaited = *static_cast<Awaited*>(self);
        Result<std::optional<std::string>> letter = awaited.letters->poll();
        if (!letter.ok()) {
            awaited.status = letter.status();
            return true;
        }
        if (!letter->has_value()) return false;
        *awaited.text = std::move(**letter);
        return true;
    }
};

// And until the last one has left.
struct Leaving {
    job::Letters* letters;
    static bool look(void* self) {
        job::Letters& letters = *static_cast<Leaving*>(self)->letters;
        return !letters.push().ok() || letters.all_sent();
    }
};

}  // namespace

Task<Status> SocketBridge::receive(Executor& executor, std::string* theirs) {
    Awaited awaited{&letters_, theirs, {}};
    Status over = co_await engine_.transfer().node_segment.until(executor, Awaited::look, &awaited);
    GANTRY_CO_TRY(over);
    co_return awaited.status;
}

Task<Status> SocketBridge::exchange(Executor& executor, std::string mine, std::string* theirs) {
    letters_.send(mine);
    Status received = co_await receive(executor, theirs);
    GANTRY_CO_TRY(received);
    Leaving leaving{&letters_};
    Status left = co_await engine_.transfer().node_segment.until(executor, Leaving::look, &leaving);
    co_return left;
}

Task<Status> MessageBridge::exchange(Executor& executor, std::string mine, std::string* theirs) {
    const coll::Team team{&engine_.messenger(), &engine_.transfer(), leaders_.get(), tag_};
    std::uint64_t length = mine.size(), coming = 0;
    const p2p::Buffer said = transfer::bytes_buffer(&length, sizeof length);
    const p2p::Buffer heard = transfer::bytes_buffer(&coming, sizeof coming);
    Status met = co_await coll::exchange(executor, team, said, 1, heard, 1);
    GANTRY_CO_TRY(met);
    theirs->resize(coming);
    const p2p::Buffer text = transfer::bytes_buffer(mine.data(), mine.size());
    const p2p::Buffer other = transfer::bytes_buffer(theirs->data(), theirs->size());
    met = co_await coll::exchange(executor, team, text, 1, other, 1);
    co_return met;
}

}  // namespace gantry::mpi
