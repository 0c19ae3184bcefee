// SPDX-License-Identifier: BSD-3-Clause
//
// What the network does with the two ends of a message: which of them its rails reach in place, how
// fast, and over how many rails a piece goes.
#pragma once

#include "plan/ask.hpp"

namespace gantry::plan {

// Over how many rails a piece is spread: a share is not below GANTRY_RAIL_STRIPE.
int rails_for(const Ask& ask, Bytes piece);

// Rails read or write this end in place.
bool rails_reach(const End& end, Reach reach);

// Cards may read a GPU's memory more slowly than they send, and write it at another rate.
double wire_rate(const Ask& ask, Stage source, Stage sink);

}  // namespace gantry::plan
