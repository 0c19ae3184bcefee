// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/agreement.hpp"

#include "coll/exchange.hpp"
#include "coll/gather.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace gantry::mpi {
namespace {

// Operations of the program have no number that all ranks know.
constexpr std::int32_t kOfProgram = -2, kOfProgramInOrder = -3;

// What travels.
struct Said {
    std::array<char, 40> function{};
    std::int32_t root = 0, op = 0;
    struct Part {
        std::int32_t there = 0, nothing = 0;
        Signature signature;
        Bytes bytes = 0;
    };
    std::array<Part, 2> parts{};
};

std::int32_t number_of(const Op* op) {
    if (op == nullptr) return Agreement::kNothing;
    if (op->predefined) return static_cast<std::int32_t>(op->operation);
    return op->commutative ? kOfProgram : kOfProgramInOrder;
}

std::string name_of_op(std::int32_t number) {
    if (number == kOfProgram) return "an operation of the program";
    if (number == kOfProgramInOrder) return "an operation of the program that does not commute";
    return layout::name(static_cast<layout::Operation>(number));
}

Said said_by(const Agreement& mine) {
    Said said;
    std::strncpy(said.function.data(), mine.function, said.function.size() - 1);
    said.root = mine.root;
    said.op = mine.op;
    for (std::size_t i = 0; i < mine.parts.size(); ++i) {
        const auto& [datatype, count] = mine.parts[i];
        if (datatype == nullptr) continue;
        const auto elements = static_cast<Bytes>(count);
        said.parts[i] = {1, 0, signature_of(*datatype, elements), elements * datatype->size()};
    }
    return said;
}

// What one rank says against what another says.
Status compare(int rank, const Said& said, int other, const Said& there) {
    if (said.function != there.function)
        return failure(MPI_ERR_OTHER, "rank {} calls {} where rank {} calls {}", rank,
                       said.function.data(), other, there.function.data());
    if (said.root != there.root)
        return failure(MPI_ERR_ROOT, "rank {} names root {}, rank {} names root {}", rank,
                       said.root, other, there.root);
    if (said.op != there.op)
        return failure(MPI_ERR_OP, "rank {} reduces by {}, rank {} by {}", rank,
                       name_of_op(said.op), other, name_of_op(there.op));
    return success();
}

Status compare(int rank, const Said::Part& part, int other, const Said::Part& there) {
    const Signature &one = part.signature, &another = there.signature;
    const bool untyped = one.matches_anything() || another.matches_anything();
    if (untyped ? part.bytes == there.bytes : one == another) return success();
    return failure(!untyped && one.items == another.items ? MPI_ERR_TYPE : MPI_ERR_COUNT,
                   "rank {} has {}, rank {} has {}", rank, words(one), other, words(another));
}

}  // namespace

Agreement agreement(const Comm& comm, const char* function, int root, const Op* op,
                    const Datatype* datatype, std::int64_t count) {
    Agreement mine;
    // The two groups of an inter-communicator say different things by right.
    if (!comm.engine->checks().on() || comm.is_inter()) return mine;
    mine.function = function;
    mine.root = root;
    mine.op = number_of(op);
    mine.parts[0] = {datatype, count};
    return mine;
}

Task<Status> agree(Executor& executor, coll::Team team, Agreement mine) {
    const Said own = said_by(mine);
    std::vector<Said> all(static_cast<std::size_t>(team.size()));
    const p2p::Buffer send = coll::bytes_buffer(&own, sizeof own);
    coll::Blocks blocks;
    blocks.address = all.data();
    blocks.count = sizeof own;
    blocks.layout = send.layout;
    Status gathered = co_await coll::allgather(executor, team, send, std::move(blocks), false);
    GANTRY_CO_TRY(gathered);
    // Not every rank has data in every operation: the first that has is what others compare with.
    int first = -1;
    Said::Part data;
    for (int rank = 0; rank < team.size(); ++rank) {
        const Said& said = all[static_cast<std::size_t>(rank)];
        Status equal = compare(rank, said, 0, all.front());
        GANTRY_CO_TRY(equal);
        for (const Said::Part& part : said.parts) {
            if (part.there == 0) continue;
            if (first < 0) data = part;
            if (first < 0) first = rank;
            equal = compare(rank, part, first, data);
            GANTRY_CO_TRY(equal);
        }
    }
    co_return success();
}

}  // namespace gantry::mpi
