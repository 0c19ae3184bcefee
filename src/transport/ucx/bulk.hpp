// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks need to know of each other to open bulk connections: a second connection to a peer,
// over TCP, on which a large transfer goes straight from its source into its place (stream.hpp) -
// two copies by the kernel and none by us, where pieces in messages take four in all. It is our
// own and not UCX's: UCX 1.13 ends the process when such a connection breaks, 1.22 forgets
// transfers of one, and either asks first where we know the answer.
//
//   sender                                    receiver
//     | -- 251 bulk asked | rail | by message -> |  looks at its door for a while
//     | == connects, greets ===================> |  knows who it is; a wrong cookie is not answered
//     | <- 252 bulk open | rail | by message --- |
//     | == head, bytes of a put ===============> |  answers as to a put in pieces (254)
//
// The receiver watches what it has accepted. A bulk connection is a convenience: until it is open,
// and when it cannot be opened, puts go in pieces. Addresses may mean other machines (every one has
// its 127.0.0.1), so the cookie and the answer by message make sure of whom we speak to.
//
// Once open it is no convenience any more: when it breaks, nobody knows what arrived, and the peer
// is lost - at once under a transfer, else when no goodbye explains it (lanes.cpp).
#pragma once

#include "transport/ucx/rail.hpp"

#include <netinet/in.h>

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

// The first bytes of a bulk connection.
struct Hello {
    std::uint32_t magic;
    std::uint32_t from, to;  // ranks
    std::uint32_t rail;      // with kTcpKeepalive: a TCP keepalive of that rail (tcp_keepalive.hpp)
    std::uint64_t cookie;    // of the listening rank, from its wire-up record
    static constexpr std::uint32_t kTcpKeepalive = 1u << 31;
};

}  // namespace gantry::transport::ucx
