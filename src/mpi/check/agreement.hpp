// SPDX-License-Identifier: BSD-3-Clause
//
// GANTRY_CHECK=1: before a collective operation runs, its ranks compare what must be the same on
// all of them. Where it is not, all of them fail with the same sentence and the operation does not
// run: nobody waits for ever, nothing is overwritten.
#pragma once

#include "base/task.hpp"
#include "coll/team.hpp"
#include "mpi/check/signature.hpp"

#include <optional>

namespace gantry::mpi {

struct Comm;
struct Datatype;
struct Op;

struct Agreement {
    static constexpr std::int32_t kNothing = -1;
    const char* function = nullptr;  // of the blocking form; null: nothing is compared
    std::int32_t root = kNothing;
    std::int32_t op = kNothing;       // a predefined one's number, or what is known of another
    std::optional<Signature> data{};  // of a rank's part, where all have the same
    std::optional<Signature> other_side{};  // of its part for itself, which is sent and received
};

// What a call says; nothing while there are no checks. `root` kNothing, `op` and `datatype` null:
// the operation has none, or they may differ.
Agreement agreement(const Comm& comm, const char* function, int root = Agreement::kNothing,
                    const Op* op = nullptr, const Datatype* datatype = nullptr,
                    std::int64_t count = 0);

// The same of a call whose rank has a part for itself: `datatype` and `count` are the side that
// `mine` does not tell of. Null: there is none (in place, or not at this rank).
Agreement with_other_side(Agreement mine, const Datatype* datatype, std::int64_t count);

Task<Status> agree(Executor& executor, coll::Team team, Agreement mine);

}  // namespace gantry::mpi
