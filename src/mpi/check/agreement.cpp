// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/agreement.hpp"

#include "coll/exchange.hpp"
#include "coll/gather.hpp"
#include "mpi/coll/op.hpp"
#include "mpi/comm/comm.hpp"
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
    std::int32_t has_data = 0, has_other_side = 0;
    Signature data{}, other_side{};
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
    if (mine.data) {
        said.has_data = 1;
        said.data = *mine.data;
    }
    if (mine.other_side) {
        said.has_other_side = 1;
        said.other_side = *mine.other_side;
    }
    return said;
}

// What a rank sends to itself against what it receives from itself.
Status compare_sides(int rank, const Said& said) {
    if (said.has_other_side == 0 || said.data == said.other_side) return success();
    if (said.data.items != said.other_side.items)
        return failure(
            MPI_ERR_COUNT,
            "the part of rank {} for itself has {} basic items on one side and {} on "
            "the other: sendcount and sendtype must say as much as recvcount and recvtype",
            rank, said.data.items, said.other_side.items);
    return failure(MPI_ERR_TYPE,
                   "the part of rank {} for itself has other basic types on one side than on the "
                   "other: sendtype and recvtype must match",
                   rank);
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
    if (said.has_data == 0 || there.has_data == 0 || said.data == there.data) return success();
    if (said.data.items != there.data.items)
        return failure(MPI_ERR_COUNT, "rank {} has {} basic items, rank {} has {}", rank,
                       said.data.items, other, there.data.items);
    return failure(MPI_ERR_TYPE, "the {} basic items of rank {} are of other types than rank {}'s",
                   said.data.items, rank, other);
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
    if (datatype != nullptr) mine.data = signature_of(*datatype, static_cast<Bytes>(count));
    return mine;
}

Agreement with_other_side(Agreement mine, const Datatype* datatype, std::int64_t count) {
    if (mine.data && datatype != nullptr)
        mine.other_side = signature_of(*datatype, static_cast<Bytes>(count));
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
    const auto with_data =
        std::ranges::find_if(all, [](const Said& said) { return said.has_data != 0; });
    for (int rank = 0; rank < team.size(); ++rank) {
        const Said& said = all[static_cast<std::size_t>(rank)];
        Status equal = compare(rank, said, 0, all.front());
        GANTRY_CO_TRY(equal);
        equal = compare_sides(rank, said);
        GANTRY_CO_TRY(equal);
        if (with_data == all.end()) continue;
        equal = compare(rank, said, static_cast<int>(with_data - all.begin()), *with_data);
        GANTRY_CO_TRY(equal);
    }
    co_return success();
}

}  // namespace gantry::mpi
