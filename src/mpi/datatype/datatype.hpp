// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes: the layout that everything below works on, with what MPI adds: bounds, name,
// attributes and how the type was made. Predefined types come from one table (datatype_table.cpp),
// indexed by the low byte of their handle.
#pragma once

#include "base/status.hpp"
#include "layout/layout.hpp"
#include "layout/reduce.hpp"
#include "layout/signature.hpp"
#include "mpi/attr/attribute.hpp"
#include "mpi/engine/handles.hpp"
#include "mpi/engine/object.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gantry::mpi {

// How a derived type was made, as MPI_Type_get_contents tells it.
struct Recipe {
    int combiner = MPI_COMBINER_NAMED;
    std::vector<MPI_Count>
        integers;  // counts, block lengths: ints, or large counts when made by a _c function
    std::vector<MPI_Count> addresses;
    std::vector<Datatype*> types;  // owned references, once given to a Datatype
    bool large = false;            // made by a _c function
};

// Runs of equal elements inside a derived type: `count` of them, and that `repeats` times.
struct Piece {
    std::ptrdiff_t displacement = 0;
    Bytes count = 0;
    Datatype* type = nullptr;  // owned reference, once it is part of a Datatype
    Bytes repeats = 1;
    std::ptrdiff_t stride = 0;  // from one repetition to the next
    Bytes elements() const { return count * repeats; }
};

struct Datatype : Object<MPI_Datatype> {
    layout::Layout layout;
    std::ptrdiff_t lower_bound = 0;
    bool explicit_bounds = false;  // set by the program, here or in a type within
    std::ptrdiff_t true_lower_bound = 0;
    std::ptrdiff_t true_extent = 0;
    std::size_t alignment = 1;
    layout::Element element =
        layout::Element::none;  // the one kind of basic item; `none` when mixed or not reducible
    std::vector<Piece> pieces;  // derived types
    std::vector<Bytes> item_sizes;  // predefined types: one basic item, or the two of a pair
    Bytes items = 0;                // basic items in one
    bool committed = false;
    bool supported = true;  // false: an optional Fortran type that this platform lacks
    std::string name;
    Attributes attributes;
    Recipe recipe;
    mutable std::optional<layout::Signature> signature;  // of one, once somebody asked (mpi/check)

    Bytes size() const { return layout.size; }
    std::ptrdiff_t extent() const { return layout.extent; }
};

// Fills the 256 entries from the table; those that are no datatype stay null.
void fill_predefined(Slab<Datatype>& slab, Datatype* (&table)[256]);
void release(Datatype* datatype);

// A derived type of these pieces, in their order; MPI_ERR_COUNT when it would have more data, or reach
// further, than an MPI_Count can say. The pieces' types are retained. Its bounds are those of the pieces, or of those whose bounds are explicit if there
// are any (the lb and ub markers of MPI 5.0 section 5.1.6).
Result<Datatype*> assemble(std::vector<Piece> pieces);
// So many bytes; MPI_ERR_COUNT when no MPI_Count can say how many.
Result<std::ptrdiff_t> distance(MPI_Count count, std::ptrdiff_t bytes_each);
// Explicit bounds, in place of what follows from the pieces.
void set_bounds(Datatype& datatype, std::ptrdiff_t lower_bound, std::ptrdiff_t extent);
// Ends a constructor: the recipe, and the handle for the program.
Status give(Result<Datatype*> made, Recipe recipe, MPI_Datatype* newtype);
// So many bytes lie at `position` of a packed buffer of `room` bytes, or MPI_ERR_TRUNCATE.
Status check_packed(MPI_Count room, MPI_Count position, Bytes bytes);

}  // namespace gantry::mpi
