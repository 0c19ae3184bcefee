// SPDX-License-Identifier: BSD-3-Clause
//
// How a type was made (MPI 5.0 section 5.1.13). Arguments are told as ints and addresses, as the
// int constructors take them; if one does not fit into an int, all of them are large counts.
#include "mpi/bodies.hpp"
#include "mpi/datatype.hpp"

#include <algorithm>
#include <climits>

namespace gantry::mpi {
namespace {

bool is_large(const Recipe& recipe) {
    return std::any_of(recipe.integers.begin(), recipe.integers.end(),
                       [](MPI_Count v) { return v < INT_MIN || v > INT_MAX; });
}

struct Numbers {
    MPI_Count integers = 0, addresses = 0, large_counts = 0, types = 0;
};

Numbers numbers_of(const Recipe& recipe) {
    const auto size = [](const auto& list) { return static_cast<MPI_Count>(list.size()); };
    if (is_large(recipe))
        return {0, 0, size(recipe.integers) + size(recipe.addresses), size(recipe.types)};
    return {size(recipe.integers), size(recipe.addresses), 0, size(recipe.types)};
}

}  // namespace

Status type_get_envelope(Datatype& datatype, MPI_Count* num_integers, MPI_Count* num_addresses,
                         MPI_Count* num_large_counts, MPI_Count* num_datatypes, int* combiner) {
    const Numbers numbers = numbers_of(datatype.recipe);
    if (num_large_counts == nullptr && numbers.large_counts > 0)
        return failure(
            MPI_ERR_TYPE,
            "this datatype was made with large counts; ask with MPI_Type_get_envelope_c");
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
    const Numbers numbers = numbers_of(recipe);
    if (max_integers < numbers.integers || max_addresses < numbers.addresses ||
        max_large_counts < numbers.large_counts || max_datatypes < numbers.types)
        return failure(MPI_ERR_ARG,
                       "the arrays are too short for {} integers, {} addresses, {} large counts "
                       "and {} datatypes (see "
                       "MPI_Type_get_envelope)",
                       numbers.integers, numbers.addresses, numbers.large_counts, numbers.types);
    if (numbers.large_counts > 0) {
        MPI_Count* next =
            std::copy(recipe.integers.begin(), recipe.integers.end(), array_of_large_counts);
        std::copy(recipe.addresses.begin(), recipe.addresses.end(), next);
    } else {
        std::transform(recipe.integers.begin(), recipe.integers.end(), array_of_integers,
                       [](MPI_Count value) { return static_cast<int>(value); });
        std::copy(recipe.addresses.begin(), recipe.addresses.end(), array_of_addresses);
    }
    for (std::size_t i = 0; i < recipe.types.size(); ++i)
        array_of_datatypes[i] =
            recipe.types[i]->predefined ? recipe.types[i]->handle : give_handle(recipe.types[i]);
    return success();
}

}  // namespace gantry::mpi
