// SPDX-License-Identifier: BSD-3-Clause
//
// Outsiders: processes of other jobs that this one is connected to. Each has a number here, behind the
// ranks of the job, by which it is a peer like any other; another process may know it under another
// number, so what processes of several jobs tell each other names identities.
//
// A connection is what one handshake of two groups has made: transports between their processes. An
// outsider stays as long as a communicator has it, a connection as long as one of its outsiders.
#pragma once

#include "base/task.hpp"
#include "transport/transport.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gantry::mpi {

class Engine;

// The same for everybody: a number drawn for the job, and the rank there.
struct Identity {
    std::uint64_t job = 0;
    std::int32_t rank = 0;
    std::int32_t unused = 0;
    auto operator<=>(const Identity&) const = default;
};

struct Connection {
    std::vector<std::unique_ptr<transport::Transport>> transports;
    int outsiders = 0;
    bool closing = false;
};

class Outsiders {
  public:
    explicit Outsiders(Engine& engine) : engine_(engine) {}
    Outsiders(const Outsiders&) = delete;
    Outsiders& operator=(const Outsiders&) = delete;

    // Whether there are any. No job without spawned or connected ones pays for more than this look.
    bool any() const { return live_ > 0; }
    bool among(std::span<const int> peers) const;
    int live() const { return live_; }
    Identity identity(int peer) const;
    // The number of that process; -1: it is none of the job, and no outsider.
    int find(const Identity& identity) const;
    // The node of a peer, so that two are the same exactly where they share one.
    int node(int peer) const;

    // A number for a process that will be an outsider, and its end where it did not become one.
    int reserve();
    void give_up(int number);
    void admit(int number, const Identity& identity, std::shared_ptr<Connection> by);
    // Communicators that have them.
    void use(std::span<const int> peers);
    void let_go(std::span<const int> peers);
    // Before the members of the last communicator with these meet for the last time: what was mapped of our
    // memory is closed behind that.
    void prepare_to_part(std::span<const int> peers);
    // Ends connections to outsiders that no communicator has any more: when what is under way with them has
    // ended. Returns at once where there are none.
    Task<Status> close_unused(Executor& executor);
    // All of them, before this process leaves MPI.
    Task<Status> close_all(Executor& executor);

  private:
    struct Outsider {
        Identity identity;
        int communicators = 0;
        std::shared_ptr<Connection> by;  // null: the number is free
    };
    std::size_t index(int number) const;
    Outsider& at(int number) { return outsiders_[index(number)]; }
    bool is_quiet(const Connection& connection) const;
    Task<Status> close(Executor& executor, std::shared_ptr<Connection> connection);

    Engine& engine_;
    std::vector<Outsider> outsiders_;
    int live_ = 0;
};

}  // namespace gantry::mpi
