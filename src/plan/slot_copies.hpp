// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// How an end is copied into or out of a slot.
CopyEngine slot_engine(const Ask& ask, const End& end);

// What a lone copy from a device into a slot takes beside its bytes.
Nanoseconds latency_to_slot(const Ask& ask);

}  // namespace gantry::plan
