// SPDX-License-Identifier: BSD-3-Clause
//
// Why a collective fails: what goes ahead of bad news (coll/exchange.hpp) to a rank that may not know yet, where
// the reason is a rank that died, or a revoked communicator.
#pragma once

#include "base/status.hpp"
#include "transport/transport.hpp"

#include <cstdint>

namespace gantry::p2p {

inline constexpr transport::MessageKind kReason = 21;

struct Reason {
    std::uint32_t context;  // base_context
    std::int32_t error_class;
};

// With what calls on a revoked communicator end.
Status revoked_status();

}  // namespace gantry::p2p
