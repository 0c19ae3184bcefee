// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks need to know of each other to open bulk connections: second connections to a peer,
// over TCP, on which a large put goes straight from its source into its place - two copies by the
// kernel and none by us, where pieces in messages take four in all.
//
// Why a second one: UCX lets a socket write into memory, and tells us when a peer dies, only on
// connections made by address and port. (Others it would have to stop by taking memory back, which
// TCP cannot.) It has two advantages more: messages never queue behind a megabyte, and UCX 1.13
// survives it when such a connection breaks.
//
//   sender                                  receiver
//     | == connects ======================>  |  Rail::listen
//     | == hello (active message 2) =======>  |  knows who it is; a wrong cookie is not answered
//     | <- 253 bulk open, by message ------- |
//     | == rendezvous of UCX, head of a put => |  answers as to a put in pieces (254)
//
// A bulk connection is a convenience: until it is open, and when it cannot be opened, puts go in
// pieces. Addresses may mean other machines (every one has its 127.0.0.1), so the cookie and the
// answer by message make sure of whom we speak to.
//
// Once open it is no convenience any more: when it breaks, nobody knows what of a put under way
// was written, or still will be. Then the peer is lost, unless it says goodbye in time: who leaves
// closes all its connections, and which end is seen first is chance.
#pragma once

#include "transport/ucx/rail.hpp"

#include <optional>

namespace gantry::transport::ucx {

// Where a rail of a rank listens.
struct BulkAddress {
    in_port_t port = 0;            // network byte order, as the addresses
    std::vector<in_addr_t> hosts;  // IPv4 addresses of the rail's devices
    static constexpr std::size_t kMost = 4;
};
enum class SameHost : std::uint8_t { no, yes };

struct Network {
    in_addr_t address, mask;
};
// Of the rail's TCP devices.
std::vector<Network> networks_of(const Rail& rail);
// The address to connect to: one in a network that we are in too, else the first. Nothing when
// none could be the peer.
std::optional<sockaddr_in> choose_address(const BulkAddress& theirs,
                                          const std::vector<Network>& ours, SameHost same_host);

// The first active message of a bulk connection.
struct Hello {
    std::uint32_t magic;
    std::uint32_t from, to;  // ranks
    std::uint32_t rail;
    std::uint64_t cookie;  // of the listening rank, from its wire-up record
};

}  // namespace gantry::transport::ucx
