// SPDX-License-Identifier: BSD-3-Clause
//
// Types chosen by what they can hold: Fortran's kinds by precision and range, by size, and pairs by
// value and index (MPI 5.0 sections 5.1.15, 19.1.5).
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/pairs.hpp"
#include "mpi/engine/process.hpp"

namespace gantry::mpi {
namespace {

struct RealKind {
    int precision, range;
    MPI_Datatype real, complex;
};
const RealKind kReals[] = {{6, 37, MPI_REAL4, MPI_COMPLEX8},
                           {15, 307, MPI_REAL8, MPI_COMPLEX16},
                           {33, 4931, MPI_REAL16, MPI_COMPLEX32}};

struct IntegerKind {
    int range;
    MPI_Datatype integer;
};
const IntegerKind kIntegers[] = {{2, MPI_INTEGER1},
                                 {4, MPI_INTEGER2},
                                 {9, MPI_INTEGER4},
                                 {18, MPI_INTEGER8},
                                 {38, MPI_INTEGER16}};

// The same request gives the same handle, which is never freed, and is legal where its basic type
// is.
Status unnamed(const Recipe& recipe, MPI_Datatype basic, MPI_Datatype* newtype) {
    Process& p = process();
    for (Datatype* known : p.fortran_types) {
        if (known->recipe.combiner == recipe.combiner &&
            known->recipe.integers == recipe.integers) {
            *newtype = known->handle;
            return success();
        }
    }
    Datatype* made = create(p.datatypes);
    if (made == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a datatype");
    const Datatype& model = *find(basic);
    made->layout = model.layout;
    made->true_extent = model.true_extent;
    made->alignment = model.alignment;
    made->element = model.element;
    made->item_sizes = model.item_sizes;
    made->items = model.items;
    made->committed = made->predefined = true;
    made->recipe = recipe;
    p.fortran_types.push_back(made);
    *newtype = made->handle;
    return success();
}

// MPI_UNDEFINED asks for nothing.
const RealKind* real_kind(int p, int r) {
    for (const RealKind& kind : kReals)
        if ((p == MPI_UNDEFINED || p <= kind.precision) && (r == MPI_UNDEFINED || r <= kind.range))
            return &kind;
    return nullptr;
}

struct Sized {
    int typeclass;
    MPI_Datatype handle;
};
const Sized kSized[] = {
    {MPI_TYPECLASS_REAL, MPI_REAL4},        {MPI_TYPECLASS_REAL, MPI_REAL8},
    {MPI_TYPECLASS_REAL, MPI_REAL16},       {MPI_TYPECLASS_INTEGER, MPI_INTEGER1},
    {MPI_TYPECLASS_INTEGER, MPI_INTEGER2},  {MPI_TYPECLASS_INTEGER, MPI_INTEGER4},
    {MPI_TYPECLASS_INTEGER, MPI_INTEGER8},  {MPI_TYPECLASS_INTEGER, MPI_INTEGER16},
    {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX8},  {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX16},
    {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX32},
};

}  // namespace

Status type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
    const RealKind* kind = real_kind(p, r);
    if (kind == nullptr) return failure(MPI_ERR_ARG, "no REAL has precision {} and range {}", p, r);
    return unnamed({MPI_COMBINER_F90_REAL, {p, r}, {}, {}}, kind->real, newtype);
}

Status type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
    const RealKind* kind = real_kind(p, r);
    if (kind == nullptr)
        return failure(MPI_ERR_ARG, "no COMPLEX has precision {} and range {}", p, r);
    return unnamed({MPI_COMBINER_F90_COMPLEX, {p, r}, {}, {}}, kind->complex, newtype);
}

Status type_create_f90_integer(int r, MPI_Datatype* newtype) {
    for (const IntegerKind& kind : kIntegers)
        if (r <= kind.range)
            return unnamed({MPI_COMBINER_F90_INTEGER, {r}, {}, {}}, kind.integer, newtype);
    return failure(MPI_ERR_ARG, "no INTEGER has range {}", r);
}

Status type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
    if (typeclass != MPI_TYPECLASS_REAL && typeclass != MPI_TYPECLASS_INTEGER &&
        typeclass != MPI_TYPECLASS_COMPLEX)
        return failure(MPI_ERR_ARG, "{} is none of MPI_TYPECLASS_*", typeclass);
    for (const Sized& sized : kSized) {
        if (sized.typeclass != typeclass || find(sized.handle)->size() != static_cast<Bytes>(size))
            continue;
        *datatype = sized.handle;
        return success();
    }
    return failure(MPI_ERR_ARG, "no Fortran type of class {} has {} bytes", typeclass, size);
}

Status type_get_value_index(Datatype& value_type, Datatype& index_type, MPI_Datatype* pair_type) {
    *pair_type = MPI_DATATYPE_NULL;
    for (const PairKind& kind : kPairKinds)
        if (kind.value == value_type.handle && kind.index == index_type.handle)
            *pair_type = kind.pair;
    return success();
}

}  // namespace gantry::mpi
