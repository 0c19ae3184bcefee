// SPDX-License-Identifier: BSD-3-Clause
//
// Rail: one port of one network card, as one UCX context with one worker. With
// GANTRY_RAILS empty there is one rail over everything UCX finds and UCX chooses the device; else
// each entry of the list is a rail of its own.
#pragma once

#include "transport/ucx/library.hpp"

#include <cstdint>
#include <memory>

namespace gantry::transport::ucx {

class Rail {
  public:
    Rail() = default;
    Rail(Rail&& other) noexcept;
    Rail& operator=(Rail&&) = delete;
    ~Rail();

    // `devices`: what UCX_NET_DEVICES takes; empty: all.
    static Result<Rail> open(const Library& library, const std::string& devices);

    ucp_context_h context() const { return context_; }
    ucp_worker_h worker() const { return worker_; }
    // What a peer needs to reach us on this rail.
    const std::string& address() const { return address_; }
    // A word of ours into which peers put their card keepalives (card_keepalive.cpp), and its key; the key is empty where no
    // card of the rail writes into memory.
    const std::string& card_keepalive_key() const { return card_keepalive_key_; }
    std::uint64_t card_keepalive_word() const {
        return reinterpret_cast<std::uint64_t>(card_keepalive_word_.get());
    }
    // "tcp/eth0", "rc_verbs/mlx5_0:1", ...
    const std::vector<std::string>& resources() const { return resources_; }
    // Those of them that lead out of this node.
    std::vector<std::string> devices() const;
    // No device of it is a card.
    bool only_tcp() const;
    // No transport of it writes into memory without the peer's processor: TCP, and datagrams of cards.
    bool only_messages() const;
    unsigned progress() { return (*library_)->ucp_worker_progress(worker_); }

  private:
    Status read_address();
    Status offer_card_keepalive_word();
    void read_resources();
    const Library* library_ = nullptr;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    std::string address_, card_keepalive_key_;
    std::unique_ptr<std::uint64_t> card_keepalive_word_;
    ucp_mem_h card_keepalive_memory_ = nullptr;
    std::vector<std::string> resources_;
};

// One rail for each entry of GANTRY_RAILS, or one for all.
Result<std::vector<Rail>> open_rails(const Library& library, const config::Config& config);

}  // namespace gantry::transport::ucx
