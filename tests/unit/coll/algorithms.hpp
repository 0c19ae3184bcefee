// SPDX-License-Identifier: BSD-3-Clause
//
// One collective by one algorithm, with a result that shows whether it is right: the programs of the
// tests of algorithms.
#pragma once

#include "affine.hpp"
#include "coll/allreduce.hpp"
#include "coll/barrier.hpp"
#include "coll/bcast.hpp"
#include "coll/gather.hpp"
#include "coll/reduce.hpp"
#include "coll/reduce_scatter.hpp"
#include "coll/scan.hpp"
#include "collective_world.hpp"

#include <string>

namespace gantry::coll {

enum class Form : std::uint8_t { usual, in_place, gaps };

struct Setting {
    plan::Collective operation = plan::Collective::barrier;
    plan::Algorithm algorithm = plan::Algorithm::automatic;
    std::size_t count = 0;  // elements of a vector, or of a block
    Place place = Place::host;
    Form form = Form::usual;
    bool ordered = false;  // a reduction of which the order of ranks shows
    int root = 0;          // from 0; beyond the ranks it counts on from 0
    bool reproducible = false;
    int* wrong = nullptr;  // counts ranks that have wrong bytes and no error
    std::vector<std::uint64_t>* messages = nullptr;  // what each rank has sent
    std::vector<Bytes>* bytes = nullptr;
};
std::string text(const Setting& setting);

// What every rank runs.
Task<Status> once(Executor& executor, Rank& rank, Setting setting);

// The algorithms of each operation, as GANTRY_COLL_... names them.
struct Algorithms {
    plan::Collective operation;
    std::vector<plan::Algorithm> list;
};
const std::vector<Algorithms>& all_algorithms();
bool keeps_order(plan::Collective operation, plan::Algorithm algorithm);
bool reduces(plan::Collective operation);

}  // namespace gantry::coll
