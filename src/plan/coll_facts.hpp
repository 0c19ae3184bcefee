// SPDX-License-Identifier: BSD-3-Clause
//
// What collectives cost, from a machine description or from what a transport says of a way.
#pragma once

#include "model/machine.hpp"
#include "plan/coll_question.hpp"
#include "transport/facts.hpp"

namespace gantry::plan {

CollFacts coll_facts_of(const model::Machine& machine);
CollWay coll_way_of(const transport::PeerFacts& way);

}  // namespace gantry::plan
