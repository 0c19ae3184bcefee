// SPDX-License-Identifier: BSD-3-Clause
//
// Bridge: how the leaders of two groups that want to become connected speak to each other: over a socket,
// or by messages where both are in a communicator already.
#pragma once

#include "coll/team.hpp"
#include "job/letters.hpp"
#include "mpi/engine/engine.hpp"

#include <memory>
#include <string>

namespace gantry::mpi {

class Bridge {
  public:
    virtual ~Bridge() = default;
    // Both sides tell each other a text.
    virtual Task<Status> exchange(Executor& executor, std::string mine, std::string* theirs) = 0;
};

class SocketBridge final : public Bridge {
  public:
    SocketBridge(Engine& engine, job::Letters letters)
        : engine_(engine), letters_(std::move(letters)) {}
    Task<Status> exchange(Executor& executor, std::string mine, std::string* theirs) override;
    // One way alone.
    Task<Status> receive(Executor& executor, std::string* theirs);
    job::Letters& letters() { return letters_; }

  private:
    Engine& engine_;
    job::Letters letters_;
};

class MessageBridge final : public Bridge {
  public:
    // `leaders`: this process and the other leader, in that order.
    MessageBridge(Engine& engine, std::shared_ptr<p2p::Group> leaders, int tag)
        : engine_(engine), leaders_(std::move(leaders)), tag_(tag) {}
    Task<Status> exchange(Executor& executor, std::string mine, std::string* theirs) override;

  private:
    Engine& engine_;
    std::shared_ptr<p2p::Group> leaders_;
    int tag_;
};

}  // namespace gantry::mpi
