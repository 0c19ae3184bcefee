// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/io/file_form.hpp"

#include "mpi/bodies.hpp"
#include "mpi/datatype/datatype.hpp"

#include <utility>
#include <vector>

namespace gantry::mpi {
namespace {

// A datatype of ours, for as long as it is needed.
class Temporary {
  public:
    explicit Temporary(MPI_Datatype handle) : handle_(handle) {}
    Temporary(Temporary&& other) noexcept
        : handle_(std::exchange(other.handle_, MPI_DATATYPE_NULL)) {}
    Temporary& operator=(Temporary&&) = delete;
    ~Temporary() {
        if (handle_ != MPI_DATATYPE_NULL) (void)type_free(&handle_).ok();
    }
    MPI_Datatype handle() const { return handle_; }
    Datatype& operator*() const { return *find(handle_); }

  private:
    MPI_Datatype handle_;
};

Result<Temporary> of_bytes(Bytes bytes) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    GANTRY_TRY(type_contiguous(static_cast<MPI_Count>(bytes), *find(MPI_BYTE), &made));
    return Temporary(made);
}

std::vector<int> ints(const MPI_Count* values, MPI_Count number) {
    std::vector<int> narrow;
    for (MPI_Count i = 0; i < number; ++i)
        narrow.push_back(static_cast<int>(values[i]));
    return narrow;
}

Status make_array(const Recipe& recipe, Datatype& old, MPI_Datatype* made) {
    const MPI_Count* n = recipe.integers.data();
    if (recipe.combiner == MPI_COMBINER_SUBARRAY) {
        const MPI_Count dims = n[0];
        return type_create_subarray(static_cast<int>(dims), n + 1, n + 1 + dims, n + 1 + 2 * dims,
                                    static_cast<int>(n[1 + 3 * dims]), old, made);
    }
    const MPI_Count dims = n[2];
    const std::vector<int> distributions = ints(n + 3 + dims, dims),
                           arguments = ints(n + 3 + 2 * dims, dims),
                           processes = ints(n + 3 + 3 * dims, dims);
    return type_create_darray(static_cast<int>(n[0]), static_cast<int>(n[1]),
                              static_cast<int>(dims), n + 3, distributions.data(), arguments.data(),
                              processes.data(), static_cast<int>(n[3 + 4 * dims]), old, made);
}

// Of one inner type.
Status make(const Recipe& recipe, Datatype& old, MPI_Datatype* made) {
    const MPI_Count* n = recipe.integers.data();
    const MPI_Count* bytes = recipe.addresses.data();
    // Of _c constructors strides and displacements are among the counts.
    const auto places = [&](std::size_t behind) {
        return recipe.addresses.empty() ? n + behind : bytes;
    };
    switch (recipe.combiner) {
        case MPI_COMBINER_CONTIGUOUS: return type_contiguous(n[0], old, made);
        case MPI_COMBINER_VECTOR: return type_vector(n[0], n[1], n[2], old, made);
        case MPI_COMBINER_HVECTOR: return type_create_hvector(n[0], n[1], *places(2), old, made);
        case MPI_COMBINER_INDEXED: return type_indexed(n[0], n + 1, n + 1 + n[0], old, made);
        case MPI_COMBINER_HINDEXED:
            return type_create_hindexed(n[0], n + 1, places(static_cast<std::size_t>(1 + n[0])),
                                        old, made);
        case MPI_COMBINER_INDEXED_BLOCK:
            return type_create_indexed_block(n[0], n[1], n + 2, old, made);
        case MPI_COMBINER_HINDEXED_BLOCK:
            return type_create_hindexed_block(n[0], n[1], places(2), old, made);
        case MPI_COMBINER_RESIZED: {
            const MPI_Count* bounds = places(0);
            return type_create_resized(old, bounds[0], bounds[1], made);
        }
        case MPI_COMBINER_SUBARRAY:
        case MPI_COMBINER_DARRAY: return make_array(recipe, old, made);
        default: return type_dup(old, made);
    }
}

Result<Temporary> rebuilt(const Datarep& datarep, const Datatype& datatype) {
    const Recipe& recipe = datatype.recipe;
    if (recipe.types.empty()) {
        Result<Bytes> bytes = datarep.size_of(datatype);
        GANTRY_TRY(bytes.status());
        return of_bytes(*bytes);
    }
    MPI_Datatype made = MPI_DATATYPE_NULL;
    if (recipe.combiner == MPI_COMBINER_STRUCT) {
        std::vector<Temporary> inner;
        std::vector<MPI_Datatype> handles;
        for (const Datatype* each : recipe.types) {
            Result<Temporary> one = rebuilt(datarep, *each);
            GANTRY_TRY(one.status());
            handles.push_back(one->handle());
            inner.push_back(std::move(*one));
        }
        const MPI_Count* n = recipe.integers.data();
        const MPI_Count* places = recipe.addresses.empty() ? n + 1 + n[0] : recipe.addresses.data();
        GANTRY_TRY(type_create_struct(n[0], n + 1, places, handles.data(), &made));
        return Temporary(made);
    }
    Result<Temporary> old = rebuilt(datarep, *recipe.types[0]);
    GANTRY_TRY(old.status());
    GANTRY_TRY(make(recipe, **old, &made));
    return Temporary(made);
}

}  // namespace

Result<layout::Layout> layout_in_file(const Datarep& datarep, const Datatype& datatype) {
    Result<Temporary> made = rebuilt(datarep, datatype);
    GANTRY_TRY(made.status());
    return (**made).layout;
}

}  // namespace gantry::mpi
