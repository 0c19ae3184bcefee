// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// The cheapest of all candidates, and what it beat (p2p_plan.cpp).
Choice best_of(const Ask& ask);

// What a verdict tells the sender for later messages, where the two ends could copy directly.
Advice advice_for(const Ask& ask, const Plan& chosen);

}  // namespace gantry::plan
