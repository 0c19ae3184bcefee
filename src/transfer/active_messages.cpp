// SPDX-License-Identifier: BSD-3-Clause
#include "transfer/active_messages.hpp"

#include "base/log.hpp"

namespace gantry::transfer {

void ActiveMessages::refuse(int from, transport::MessageKind kind) {
    log::error("rank {} sent a message of unknown kind {}: mixed versions of Gantry in one job?",
               from, kind);
}

}  // namespace gantry::transfer
