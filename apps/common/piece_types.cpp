// SPDX-License-Identifier: BSD-3-Clause
#include "piece_types.hpp"

namespace gantry::apps {

PieceType::PieceType(const Fields& fields, const Message& message, End end) {
    std::vector<MPI_Datatype> parts;
    std::vector<MPI_Aint> displacements;
    MPI_Aint base = 0;  // MPI_BOTTOM
    if (fields.one_allocation()) MPI_Get_address(fields.base(), &base);
    for (const Piece& piece : message.pieces) {
        const Box& box = end == End::sender ? piece.from : piece.to;
        int whole[3], some[3], start[3];
        for (int axis = 0; axis < 3; ++axis) {  // C order: the slowest axis first
            whole[2 - axis] = static_cast<int>(fields.padded(axis));
            some[2 - axis] = static_cast<int>(box.n[axis]);
            start[2 - axis] = static_cast<int>(box.lo[axis]);
        }
        MPI_Type_create_subarray(3, whole, some, start, MPI_ORDER_C, fields.type(),
                                 &parts.emplace_back());
        MPI_Aint at = 0;
        MPI_Get_address(fields.field(piece.field), &at);
        displacements.push_back(MPI_Aint_diff(at, base));
    }
    const std::vector<int> ones(parts.size(), 1);
    MPI_Type_create_struct(static_cast<int>(parts.size()), ones.data(), displacements.data(),
                           parts.data(), &type_);
    MPI_Type_commit(&type_);
    for (MPI_Datatype& part : parts)
        MPI_Type_free(&part);
}

}  // namespace gantry::apps
