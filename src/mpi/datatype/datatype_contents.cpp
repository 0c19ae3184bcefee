// SPDX-License-Identifier: BSD-3-Clause
//
// How a type was made (MPI 5.0 section 5.1.13): the arguments of its constructor as ints and
// addresses. Of a _c constructor counts, lengths and displacements are large counts; the rest stay
// ints.
#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace gantry::mpi {
namespace {

using Integers = std::span<const MPI_Count>;

// Those integers of the recipe that are told as large counts; they stand together.
Integers large_counts_of(const Recipe& recipe) {
    const Integers all(recipe.integers);
    if (!recipe.large) return all.first(0);
    switch (recipe.combiner) {
        case MPI_COMBINER_SUBARRAY:  // ndims | sizes, subsizes, starts | order
            return all.subspan(1, all.size() - 2);
        case MPI_COMBINER_DARRAY:  // size, rank, ndims | gsizes | distribs, dargs, psizes, order
            return all.subspan(3, static_cast<std::size_t>(all[2]));
        default: return all;
    }
}

struct Numbers {
    MPI_Count integers = 0, addresses = 0, large_counts = 0, types = 0;
};

Numbers numbers_of(const Recipe& recipe) {
    const auto size = [](const auto& list) { return static_cast<MPI_Count>(list.size()); };
    const MPI_Count large = size(large_counts_of(recipe)), addresses = size(recipe.addresses);
    Numbers numbers{size(recipe.integers) - large, addresses, large, size(recipe.types)};
    if (recipe.large) numbers.large_counts += std::exchange(numbers.addresses, 0);
    return numbers;
}

// For the int forms, which cannot tell large counts.
Status check_form(const Recipe& recipe, const MPI_Count* large_counts) {
    if (!recipe.large || large_counts != nullptr) return success();
    return failure(MPI_ERR_TYPE,
                   "this datatype was made with large counts; ask with MPI_Type_get_envelope_c and "
                   "MPI_Type_get_contents_c");
}

}  // namespace

Status type_get_envelope(Datatype& datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                         MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner) {
    GANTRY_TRY(check_form(datatype.recipe, num_large_counts));
    const Numbers numbers = numbers_of(datatype.recipe);
    *num_integers = numbers.integers;
    *num_addresses = numbers.addresses;
    if (num_large_counts != nullptr) *num_large_counts = numbers.large_counts;
    *num_datatypes = numbers.types;
    *combiner = datatype.recipe.combiner;
    return success();
}

Status type_get_contents(Datatype& datatype, MPI_Count max_integers, MPI_Count max_addresses,
                         MPI_Count max_large_counts, MPI_Count max_datatypes,
                         int* array_of_integers, MPI_Aint* array_of_addresses,
                         MPI_Count* array_of_large_counts, MPI_Datatype* array_of_datatypes) {
    const Recipe& recipe = datatype.recipe;
    if (recipe.combiner == MPI_COMBINER_NAMED)
        return failure(MPI_ERR_TYPE, "{} is predefined: it has no contents", datatype.name);
    GANTRY_TRY(check_form(recipe, array_of_large_counts));
    const Numbers numbers = numbers_of(recipe);
    if (max_integers < numbers.integers || max_addresses < numbers.addresses ||
        max_large_counts < numbers.large_counts || max_datatypes < numbers.types)
        return failure(MPI_ERR_ARG,
                       "the arrays are too short for {} integers, {} addresses, {} large counts "
                       "and {} datatypes (see "
                       "MPI_Type_get_envelope)",
                       numbers.integers, numbers.addresses, numbers.large_counts, numbers.types);
    const Integers integers(recipe.integers), large_counts = large_counts_of(recipe);
    const auto narrow = [](MPI_Count value) { return static_cast<int>(value); };
    int* next = std::transform(integers.begin(), large_counts.begin(), array_of_integers, narrow);
    std::transform(large_counts.end(), integers.end(), next, narrow);
    MPI_Count* next_large =
        std::copy(large_counts.begin(), large_counts.end(), array_of_large_counts);
    if (recipe.large)
        std::copy(recipe.addresses.begin(), recipe.addresses.end(), next_large);
    else
        std::copy(recipe.addresses.begin(), recipe.addresses.end(), array_of_addresses);
    for (std::size_t i = 0; i < recipe.types.size(); ++i)
        array_of_datatypes[i] =
            recipe.types[i]->predefined ? recipe.types[i]->handle : give_handle(recipe.types[i]);
    return success();
}

}  // namespace gantry::mpi
