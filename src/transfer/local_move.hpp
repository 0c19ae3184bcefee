// SPDX-License-Identifier: BSD-3-Clause
//
// Data from one place to another that this process both reaches: one copy, or two where the ends have
// no copy between them.
#pragma once

#include "transfer/mover.hpp"

namespace gantry::transfer {

// The first `accepted` of the source's bytes; it has `source_bytes`.
Task<Status> move_locally(Executor& executor, Context& context, Side source, Bytes source_bytes,
                          Side sink, Bytes accepted);

}  // namespace gantry::transfer
