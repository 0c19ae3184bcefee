// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes: the layout that everything below works on, with what MPI adds: bounds, name, attributes and how the type was made.
// Predefined types come from one table (datatype_table.cpp), indexed by the low byte of their handle.
#pragma once

#include "base/status.hpp"
#include "layout/layout.hpp"
#include "layout/reduce.hpp"
#include "mpi/attribute.hpp"
#include "mpi/handles.hpp"
#include "mpi/object.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace gantry::mpi {

// How a derived type was made, as MPI_Type_get_contents tells it.
struct Recipe {
    int combiner = MPI_COMBINER_NAMED;
    std::vector<MPI_Count> integers;       // counts, block lengths: ints, or large counts when made by a _c function
    std::vector<MPI_Count> addresses;
    std::vector<Datatype*> types;          // owned references
};

// A run of equal basic items in the type map, for MPI_Get_elements.
struct Items {
    Bytes size = 0;                        // of one item
    Bytes count = 0;
};

struct Datatype : Object<MPI_Datatype> {
    layout::Layout layout;
    std::ptrdiff_t lower_bound = 0;
    std::ptrdiff_t true_lower_bound = 0;
    std::ptrdiff_t true_extent = 0;
    std::size_t alignment = 1;
    layout::Element element = layout::Element::none;  // the one kind of basic item; `none` when mixed or not reducible
    Bytes elements = 1;                    // basic items of kind `element` in one
    std::vector<Items> items;
    bool committed = false;
    bool supported = true;                 // false: an optional Fortran type that this platform lacks
    std::string name;
    Attributes attributes;
    Recipe recipe;

    Bytes size() const { return layout.size; }
    std::ptrdiff_t extent() const { return layout.extent; }
};

// Fills the 256 entries from the table; those that are no datatype stay null.
void fill_predefined(Slab<Datatype>& slab, Datatype* (&table)[256]);
void release(Datatype* datatype);

}  // namespace gantry::mpi
