// SPDX-License-Identifier: BSD-3-Clause
//
// The constructors of derived datatypes (MPI 5.0 section 5.1): contiguous, the vectors, the indexed
// ones, struct, resized.
#include "base/room.hpp"
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <algorithm>
#include <vector>

namespace gantry::mpi {
namespace {

using Counts = std::vector<MPI_Count>;

// What a constructor keeps of each element of a list: its piece and up to three numbers of the
// recipe, a fourth while that grows.
constexpr Bytes kListedBytes = sizeof(Piece) + 4 * sizeof(MPI_Count);

Bytes unsigned_count(MPI_Count count) {
    return static_cast<Bytes>(count);
}

// `scale`: what the stride counts in.
Status make_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, std::ptrdiff_t scale,
                   Datatype& oldtype, Recipe recipe, MPI_Datatype* newtype) {
    Result<std::ptrdiff_t> bytes = distance(stride, scale);
    if (!bytes.ok()) return bytes.status();
    return give(
        assemble({{0, unsigned_count(blocklength), &oldtype, unsigned_count(count), *bytes}}),
        std::move(recipe), newtype);
}

// `scale`: what a displacement counts in.
Status make_indexed(MPI_Count count, const MPI_Count* blocklengths, MPI_Count blocklength,
                    const MPI_Count* displacements, std::ptrdiff_t scale, Datatype& oldtype,
                    Recipe recipe, MPI_Datatype* newtype) {
    std::vector<Piece> pieces;
    pieces.reserve(static_cast<std::size_t>(count));
    for (MPI_Count i = 0; i < count; ++i) {
        const MPI_Count length = blocklengths != nullptr ? blocklengths[i] : blocklength;
        if (length == 0) continue;  // wherever it would lie
        Result<std::ptrdiff_t> bytes = distance(displacements[i], scale);
        if (!bytes.ok()) return bytes.status();
        pieces.push_back({*bytes, unsigned_count(length), &oldtype});
    }
    return give(assemble(std::move(pieces)), std::move(recipe), newtype);
}

Counts list(MPI_Count first, const MPI_Count* values, MPI_Count count) {
    Counts all{first};
    all.insert(all.end(), values, values + count);
    return all;
}

void append(Counts& all, const MPI_Count* values, MPI_Count count) {
    all.insert(all.end(), values, values + count);
}

}  // namespace

Status type_contiguous(MPI_Count count, Datatype& oldtype, MPI_Datatype* newtype) {
    return give(assemble({{0, unsigned_count(count), &oldtype}}),
                {MPI_COMBINER_CONTIGUOUS, {count}, {}, {&oldtype}}, newtype);
}

Status type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype,
                   MPI_Datatype* newtype) {
    return make_vector(count, blocklength, stride, oldtype.extent(), oldtype,
                       {MPI_COMBINER_VECTOR, {count, blocklength, stride}, {}, {&oldtype}},
                       newtype);
}

Status type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                           Datatype& oldtype, MPI_Datatype* newtype) {
    return make_vector(count, blocklength, stride, 1, oldtype,
                       {MPI_COMBINER_HVECTOR, {count, blocklength}, {stride}, {&oldtype}}, newtype);
}

Status type_indexed(MPI_Count count, const MPI_Count* array_of_blocklengths,
                    const MPI_Count* array_of_displacements, Datatype& oldtype,
                    MPI_Datatype* newtype) {
    GANTRY_TRY(check_room(unsigned_count(count), kListedBytes));
    Counts integers = list(count, array_of_blocklengths, count);
    append(integers, array_of_displacements, count);
    return make_indexed(count, array_of_blocklengths, 0, array_of_displacements, oldtype.extent(),
                        oldtype, {MPI_COMBINER_INDEXED, std::move(integers), {}, {&oldtype}},
                        newtype);
}

Status type_create_hindexed(MPI_Count count, const MPI_Count* array_of_blocklengths,
                            const MPI_Count* array_of_displacements, Datatype& oldtype,
                            MPI_Datatype* newtype) {
    GANTRY_TRY(check_room(unsigned_count(count), kListedBytes));
    Counts addresses;
    append(addresses, array_of_displacements, count);
    return make_indexed(count, array_of_blocklengths, 0, array_of_displacements, 1, oldtype,
                        {MPI_COMBINER_HINDEXED,
                         list(count, array_of_blocklengths, count),
                         std::move(addresses),
                         {&oldtype}},
                        newtype);
}

Status type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
                                 const MPI_Count* array_of_displacements, Datatype& oldtype,
                                 MPI_Datatype* newtype) {
    GANTRY_TRY(check_room(unsigned_count(count), kListedBytes));
    Counts integers{count, blocklength};
    append(integers, array_of_displacements, count);
    return make_indexed(count, nullptr, blocklength, array_of_displacements, oldtype.extent(),
                        oldtype, {MPI_COMBINER_INDEXED_BLOCK, std::move(integers), {}, {&oldtype}},
                        newtype);
}

Status type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
                                  const MPI_Count* array_of_displacements, Datatype& oldtype,
                                  MPI_Datatype* newtype) {
    GANTRY_TRY(check_room(unsigned_count(count), kListedBytes));
    Counts addresses;
    append(addresses, array_of_displacements, count);
    return make_indexed(
        count, nullptr, blocklength, array_of_displacements, 1, oldtype,
        {MPI_COMBINER_HINDEXED_BLOCK, {count, blocklength}, std::move(addresses), {&oldtype}},
        newtype);
}

Status type_create_struct(MPI_Count count, const MPI_Count* array_of_blocklengths,
                          const MPI_Count* array_of_displacements,
                          const MPI_Datatype* array_of_types, MPI_Datatype* newtype) {
    GANTRY_TRY(check_room(unsigned_count(count), kListedBytes));
    std::vector<Piece> pieces;
    Recipe recipe{MPI_COMBINER_STRUCT, list(count, array_of_blocklengths, count), {}, {}};
    append(recipe.addresses, array_of_displacements, count);
    pieces.reserve(static_cast<std::size_t>(count));
    recipe.types.reserve(static_cast<std::size_t>(count));
    for (MPI_Count i = 0; i < count; ++i) {
        Datatype* type = find(array_of_types[i]);
        pieces.push_back(
            {array_of_displacements[i], unsigned_count(array_of_blocklengths[i]), type});
        recipe.types.push_back(type);
    }
    Result<Datatype*> made = assemble(std::move(pieces));
    // A struct ends where a C compiler would end it, so that arrays of it fit, unless the program
    // said where (MPI 5.0 section 5.1.6).
    if (made.ok() && !(*made)->explicit_bounds) {
        const auto alignment = static_cast<std::ptrdiff_t>((*made)->alignment);
        const std::ptrdiff_t excess = (*made)->extent() % alignment;
        if (excess != 0) (*made)->layout.extent += alignment - excess;
    }
    return give(std::move(made), std::move(recipe), newtype);
}

Status type_create_resized(Datatype& oldtype, MPI_Count lb, MPI_Count extent,
                           MPI_Datatype* newtype) {
    Result<Datatype*> made = assemble({{0, 1, &oldtype}});
    if (made.ok()) set_bounds(**made, lb, extent);
    return give(std::move(made), {MPI_COMBINER_RESIZED, {}, {lb, extent}, {&oldtype}}, newtype);
}

}  // namespace gantry::mpi
