// SPDX-License-Identifier: BSD-3-Clause
//
// What the shared-memory tests share: a job without a launcher, and one rank's transport with a
// receiver that notes what came. The store is plain memory: threads share it, and a forked child
// has a copy of what was put before the fork.
#pragma once

#include "base/clock.hpp"
#include "base/config.hpp"
#include "transport/shm/shm.hpp"

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gantry::transport::shm {

using Store = std::map<std::pair<int, std::string>, std::string>;

class LocalJob final : public job::Job {
  public:
    LocalJob(int rank, int size, std::shared_ptr<Store> store)
        : rank_(rank),
          size_(size),
          nodes_(static_cast<std::size_t>(size), 0),
          store_(std::move(store)) {}
    const char* launcher() const override { return "test"; }
    int rank() const override { return rank_; }
    int size() const override { return size_; }
    std::string_view id() const override { return "test"; }
    const std::vector<int>& nodes() const override { return nodes_; }
    void set_nodes(std::vector<int> nodes) { nodes_ = std::move(nodes); }
    Status put(std::string_view key, std::string_view value) override {
        (*store_)[{rank_, std::string(key)}] = std::string(value);
        return success();
    }
    Task<Status> fence(Executor&) override { co_return success(); }
    Result<std::string> get(int rank, std::string_view key) override {
        const auto found = store_->find({rank, std::string(key)});
        if (found == store_->end()) return failure(MPI_ERR_INTERN, "no {} of rank {}", key, rank);
        return found->second;
    }
    void abort(int, std::string_view) override {}
    Status finalize() override { return success(); }

  private:
    int rank_;
    int size_;
    std::vector<int> nodes_;
    std::shared_ptr<Store> store_;
};

struct Arrived {
    int peer;
    MessageKind kind;
    std::string header;
    std::string payload;
};

class Notebook final : public Receiver {
  public:
    void on_message(int peer, MessageKind kind, ConstSpan header, ConstSpan payload) override {
        if (on_arrival) return on_arrival(peer, kind, header, payload);
        messages.push_back({peer, kind, text(header), text(payload)});
    }
    void on_peer_lost(int peer, const Status& why) override { lost.emplace_back(peer, why); }
    static std::string text(ConstSpan bytes) {
        return bytes.empty()
                   ? std::string()
                   : std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }

    std::function<void(int, MessageKind, ConstSpan, ConstSpan)> on_arrival;
    std::vector<Arrived> messages;
    std::vector<std::pair<int, Status>> lost;
};

// One rank: clock, configuration, job, transport.
struct Rank {
    Rank(int rank, int size, std::shared_ptr<Store> store, config::Config settings = {})
        : config(std::move(settings)),
          job(rank, size, std::move(store)),
          executor(clock),
          transport(clock, config) {}
    Status publish() { return transport.publish(job); }
    Status open() { return transport.open(job, notebook); }
    Status send(int peer, MessageKind kind, std::string_view header, std::string_view payload) {
        return transport.send(peer, kind, std::as_bytes(std::span(header)),
                              std::as_bytes(std::span(payload)));
    }
    // Progress until it holds; false after a minute.
    template <class Condition>
    bool progress_until(Condition&& condition) {
        const Nanoseconds limit = clock.now() + 60 * kSecond;
        while (!condition()) {
            transport.progress();
            executor.run_ready();
            if (clock.now() > limit) return false;
        }
        return true;
    }
    bool close() {
        Task<Status> closing = transport.close(executor);
        closing.start();
        return progress_until([&] { return closing.done(); }) && closing.take().ok();
    }

    SteadyClock clock;
    config::Config config;
    LocalJob job;
    Executor executor;
    Notebook notebook;
    ShmTransport transport;
};

inline std::string pattern(std::size_t bytes, std::uint64_t seed) {
    std::string text(bytes, '\0');
    std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (char& c : text) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        c = static_cast<char>(state >> 56);
    }
    return text;
}

}  // namespace gantry::transport::shm
