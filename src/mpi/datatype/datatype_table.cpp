// SPDX-License-Identifier: BSD-3-Clause
//
// The 71 predefined datatypes, one row each: the ABI's value, size, alignment, kind of item. Pair
// types have a value and an index with the padding that C gives such a struct. Fortran types are
// those of 32-bit default INTEGER, REAL and LOGICAL (gfortran's and everybody's default). Characters
// are integers to a reduction: the standard defines none on them, every other library does.
#include "mpi/datatype/datatype.hpp"

#include <cstdint>

namespace gantry::mpi {
namespace {

using layout::Element;

struct Row {
    MPI_Datatype handle;
    const char* name;
    Bytes size;
    std::size_t alignment;
    Element element;
};

// Of a struct { value; int index; } or of two equal values.
struct PairRow {
    MPI_Datatype handle;
    const char* name;
    Bytes first, second;
    std::size_t alignment;
    Element element;
};

template <class T>
constexpr Element integer() {
    constexpr bool is_signed = T(-1) < T(0);
    switch (sizeof(T)) {
        case 1: return is_signed ? Element::int8 : Element::uint8;
        case 2: return is_signed ? Element::int16 : Element::uint16;
        case 4: return is_signed ? Element::int32 : Element::uint32;
        default: return is_signed ? Element::int64 : Element::uint64;
    }
}

#define INTEGER(handle, type) \
    { handle, #handle, sizeof(type), alignof(type), integer<type>() }
#define ITEM(handle, type, element) \
    { handle, #handle, sizeof(type), alignof(type), Element::element }
#define COMPLEX(handle, type, element) \
    { handle, #handle, 2 * sizeof(type), alignof(type), Element::element }
#define ABSENT(handle) \
    { handle, #handle, 0, 1, Element::none }

__extension__ using Int128 = __int128;
__extension__ using Float128 = __float128;

const Row kRows[] = {
    ITEM(MPI_AINT, MPI_Aint, address),
    ITEM(MPI_COUNT, MPI_Count, count),
    ITEM(MPI_OFFSET, MPI_Offset, offset),
    ITEM(MPI_PACKED, char, none),
    INTEGER(MPI_SHORT, short),
    INTEGER(MPI_INT, int),
    INTEGER(MPI_LONG, long),
    INTEGER(MPI_LONG_LONG_INT, long long),
    INTEGER(MPI_UNSIGNED_SHORT, unsigned short),
    INTEGER(MPI_UNSIGNED, unsigned),
    INTEGER(MPI_UNSIGNED_LONG, unsigned long),
    INTEGER(MPI_UNSIGNED_LONG_LONG, unsigned long long),
    ITEM(MPI_FLOAT, float, float32),
    COMPLEX(MPI_C_COMPLEX, float, complex64),
    COMPLEX(MPI_CXX_FLOAT_COMPLEX, float, complex64),
    ITEM(MPI_DOUBLE, double, float64),
    COMPLEX(MPI_C_DOUBLE_COMPLEX, double, complex128),
    COMPLEX(MPI_CXX_DOUBLE_COMPLEX, double, complex128),
    ITEM(MPI_LOGICAL, std::int32_t, logical32),
    INTEGER(MPI_INTEGER, std::int32_t),
    ITEM(MPI_REAL, float, float32),
    COMPLEX(MPI_COMPLEX, float, complex64),
    ITEM(MPI_DOUBLE_PRECISION, double, float64),
    COMPLEX(MPI_DOUBLE_COMPLEX, double, complex128),
    INTEGER(MPI_CHARACTER, signed char),
    ITEM(MPI_LONG_DOUBLE, long double, long_double),
    COMPLEX(MPI_C_LONG_DOUBLE_COMPLEX, long double, complex_long_double),
    COMPLEX(MPI_CXX_LONG_DOUBLE_COMPLEX, long double, complex_long_double),
    ITEM(MPI_C_BOOL, bool, boolean),
    ITEM(MPI_CXX_BOOL, bool, boolean),
    INTEGER(MPI_WCHAR, wchar_t),
    INTEGER(MPI_INT8_T, std::int8_t),
    INTEGER(MPI_UINT8_T, std::uint8_t),
    INTEGER(MPI_CHAR, signed char),
    INTEGER(MPI_SIGNED_CHAR, signed char),
    INTEGER(MPI_UNSIGNED_CHAR, unsigned char),
    ITEM(MPI_BYTE, unsigned char, byte),
    INTEGER(MPI_INT16_T, std::int16_t),
    INTEGER(MPI_UINT16_T, std::uint16_t),
    INTEGER(MPI_INT32_T, std::int32_t),
    INTEGER(MPI_UINT32_T, std::uint32_t),
    INTEGER(MPI_INT64_T, std::int64_t),
    INTEGER(MPI_UINT64_T, std::uint64_t),
    ITEM(MPI_LOGICAL1, std::int8_t, logical8),
    INTEGER(MPI_INTEGER1, std::int8_t),
    ITEM(MPI_LOGICAL2, std::int16_t, logical16),
    INTEGER(MPI_INTEGER2, std::int16_t),
    ITEM(MPI_REAL2, std::uint16_t, float16),
    ITEM(MPI_LOGICAL4, std::int32_t, logical32),
    INTEGER(MPI_INTEGER4, std::int32_t),
    ITEM(MPI_REAL4, float, float32),
    ABSENT(MPI_COMPLEX4),
    ITEM(MPI_LOGICAL8, std::int64_t, logical64),
    INTEGER(MPI_INTEGER8, std::int64_t),
    ITEM(MPI_REAL8, double, float64),
    COMPLEX(MPI_COMPLEX8, float, complex64),
    ITEM(MPI_LOGICAL16, Int128, logical128),
    ITEM(MPI_INTEGER16, Int128, int128),
    ITEM(MPI_REAL16, Float128, float128),
    COMPLEX(MPI_COMPLEX16, double, complex128),
    COMPLEX(MPI_COMPLEX32, Float128, complex256),
};

#define PAIR(handle, value, index, element)                                                     \
    {                                                                                           \
        handle, #handle, sizeof(value), sizeof(index),                                          \
            alignof(value) > alignof(index) ? alignof(value) : alignof(index), Element::element \
    }

const PairRow kPairs[] = {
    PAIR(MPI_FLOAT_INT, float, int, float_int),
    PAIR(MPI_DOUBLE_INT, double, int, double_int),
    PAIR(MPI_LONG_INT, long, int, long_int),
    PAIR(MPI_2INT, int, int, int_int),
    PAIR(MPI_SHORT_INT, short, int, short_int),
    PAIR(MPI_LONG_DOUBLE_INT, long double, int, long_double_int),
    PAIR(MPI_2REAL, float, float, real_real),
    PAIR(MPI_2DOUBLE_PRECISION, double, double, double_double),
    PAIR(MPI_2INTEGER, std::int32_t, std::int32_t, integer_integer),
};
static_assert(std::size(kRows) + std::size(kPairs) + 1 == 71,
              "every datatype constant of the ABI, with MPI_DATATYPE_NULL");

#undef INTEGER
#undef ITEM
#undef COMPLEX
#undef ABSENT
#undef PAIR

Datatype* add(Slab<Datatype>& slab, Datatype* (&table)[256], MPI_Datatype handle,
              const char* name) {
    Datatype* datatype = slab.create();
    GANTRY_ASSERT(datatype != nullptr);
    datatype->handle = handle;
    datatype->predefined = true;
    datatype->committed = true;
    datatype->name = name;
    table[reinterpret_cast<std::uintptr_t>(handle) & 0xff] = datatype;
    return datatype;
}

}  // namespace

void fill_predefined(Slab<Datatype>& slab, Datatype* (&table)[256]) {
    for (const Row& row : kRows) {
        Datatype* datatype = add(slab, table, row.handle, row.name);
        datatype->supported = row.size > 0;
        if (!datatype->supported) continue;
        datatype->layout = layout::contiguous_layout(row.size);
        datatype->alignment = row.alignment;
        datatype->true_extent = static_cast<std::ptrdiff_t>(row.size);
        datatype->element = row.element;
        datatype->item_sizes = {row.size};
        datatype->items = 1;
    }
    for (const PairRow& row : kPairs) {
        Datatype* datatype = add(slab, table, row.handle, row.name);
        const Bytes second = round_up(row.first, row.second);
        const Bytes end = second + row.second;
        const layout::Block members[] = {{0, row.first},
                                         {static_cast<std::ptrdiff_t>(second), row.second}};
        datatype->layout = layout::listed_layout(
            static_cast<std::ptrdiff_t>(round_up(end, row.alignment)), members);
        datatype->alignment = row.alignment;
        datatype->true_extent = static_cast<std::ptrdiff_t>(end);
        datatype->element = row.element;
        datatype->item_sizes = {row.first, row.second};
        datatype->items = 2;
    }
}

}  // namespace gantry::mpi
