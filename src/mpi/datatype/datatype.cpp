// SPDX-License-Identifier: BSD-3-Clause
//
// Derived datatypes as pieces: each constructor says which runs of elements of which type lie
// where, and everything else - layout, bounds, number of items - follows here. Owners are counted,
// since messages in flight and types built from it outlive the program's handle.
#include "mpi/datatype/datatype.hpp"

#include "base/room.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/engine/text.hpp"

#include <algorithm>
#include <utility>

namespace gantry::mpi {
namespace {

Status too_far() {
    return failure(MPI_ERR_COUNT,
                   "a datatype that reaches further than an address can: its counts, strides or "
                   "displacements are too large");
}

// Neighbours of one kind at equal distances as one piece.
void join_repeats(std::vector<Piece>& pieces) {
    std::size_t last = 0;
    for (std::size_t next = 1; next < pieces.size(); ++next) {
        Piece& joined = pieces[last];
        const Piece& piece = pieces[next];
        std::ptrdiff_t distance = 0, expected = 0;
        const bool alike =
            joined.type == piece.type && joined.count == piece.count && piece.repeats == 1 &&
            !__builtin_sub_overflow(piece.displacement, joined.displacement, &distance);
        if (alike && joined.repeats == 1) joined.stride = distance;
        if (alike && !__builtin_mul_overflow(joined.repeats, joined.stride, &expected) &&
            expected == distance)
            ++joined.repeats;
        else
            pieces[++last] = piece;
    }
    if (!pieces.empty()) pieces.resize(last + 1);
}

// The form of all pieces, one behind the other.
layout::FormPtr form_of(const std::vector<Piece>& pieces) {
    layout::FormBuilder builder;
    for (const Piece& piece : pieces)
        builder.add(piece.displacement,
                    layout::repeated(piece.type->layout.form, piece.count, piece.type->extent()),
                    piece.repeats, piece.stride);
    return builder.finish();
}

// Lowest and highest byte, as bounds and as data.
struct Reach {
    bool any = false;
    std::ptrdiff_t low = 0, high = 0;

    // False: no address is as far.
    bool add(const Piece& piece, std::ptrdiff_t low_of_one, std::ptrdiff_t extent_of_one) {
        std::ptrdiff_t first = 0, end = 0;
        if (__builtin_add_overflow(piece.displacement, low_of_one, &first) ||
            __builtin_add_overflow(first, extent_of_one, &end) ||
            !widen(first, end, piece.count, piece.type->extent()) ||
            !widen(first, end, piece.repeats, piece.stride))
            return false;
        low = any ? std::min(low, first) : first;
        high = any ? std::max(high, end) : end;
        any = true;
        return true;
    }
    bool extent(std::ptrdiff_t& bytes) const { return !__builtin_sub_overflow(high, low, &bytes); }

  private:
    static bool widen(std::ptrdiff_t& first, std::ptrdiff_t& end, Bytes count,
                      std::ptrdiff_t stride) {
        std::ptrdiff_t last = 0;
        if (__builtin_mul_overflow(count - 1, stride, &last)) return false;
        std::ptrdiff_t& edge = last < 0 ? first : end;
        return !__builtin_add_overflow(edge, last, &edge);
    }
};

// Data bytes of all pieces; false: more than an MPI_Count can say.
bool add_size(const Piece& piece, MPI_Count& size) {
    MPI_Count bytes = static_cast<MPI_Count>(piece.type->size());
    return bytes == 0 || (!__builtin_mul_overflow(bytes, piece.count, &bytes) &&
                          !__builtin_mul_overflow(bytes, piece.repeats, &bytes) &&
                          !__builtin_add_overflow(size, bytes, &size));
}

}  // namespace

Result<std::ptrdiff_t> distance(MPI_Count count, std::ptrdiff_t bytes_each) {
    std::ptrdiff_t bytes = 0;
    if (__builtin_mul_overflow(count, bytes_each, &bytes)) return too_far();
    return bytes;
}

Result<Datatype*> assemble(std::vector<Piece> pieces) {
    std::erase_if(pieces,
                  [](const Piece& piece) { return piece.count == 0 || piece.repeats == 0; });
    join_repeats(pieces);
    Reach marked, unmarked, data;
    MPI_Count size = 0;
    for (const Piece& piece : pieces) {
        const Datatype& type = *piece.type;
        if (!add_size(piece, size))
            return failure(MPI_ERR_COUNT,
                           "a datatype of more data bytes than an MPI_Count can say: its counts "
                           "are too large");
        Reach& bounds = type.explicit_bounds ? marked : unmarked;
        if (!bounds.add(piece, type.lower_bound, type.extent()) ||
            (type.size() > 0 && !data.add(piece, type.true_lower_bound, type.true_extent)))
            return too_far();
    }
    // MPICH lets every piece count here, also beside one with explicit bounds.
    const Reach& bounds = marked.any ? marked : unmarked;
    std::ptrdiff_t extent = 0, true_extent = 0;
    if (!bounds.extent(extent) || !data.extent(true_extent)) return too_far();
    GANTRY_TRY(check_room(pieces.size(), layout::kFormBytes));
    Datatype* made = create(process().datatypes);
    if (made == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a datatype");
    made->layout = layout::Layout(form_of(pieces), extent);
    for (const Piece& piece : pieces) {
        made->items += piece.elements() * piece.type->items;
        made->alignment = std::max(made->alignment, piece.type->alignment);
        retain(piece.type);
    }
    made->pieces = std::move(pieces);
    made->lower_bound = bounds.low;
    made->explicit_bounds = marked.any;
    made->true_lower_bound = data.low;
    made->true_extent = true_extent;
    return made;
}

void set_bounds(Datatype& datatype, std::ptrdiff_t lower_bound, std::ptrdiff_t extent) {
    datatype.lower_bound = lower_bound;
    datatype.layout.extent = extent;
    datatype.explicit_bounds = true;
}

Status give(Result<Datatype*> made, Recipe recipe, MPI_Datatype* newtype) {
    if (!made.ok()) return std::move(made).status();
    Datatype* datatype = *made;
    for (Datatype* type : recipe.types)
        retain(type);
    datatype->recipe = std::move(recipe);
    *newtype = datatype->handle;
    return success();
}

Status with_large_counts(Status made, const MPI_Datatype* newtype) {
    if (made.ok()) find(*newtype)->recipe.large = true;
    return made;
}

void release(Datatype* datatype) {
    if (!let_go(datatype)) return;
    for (Datatype* type : datatype->recipe.types)
        release(type);
    for (const Piece& piece : datatype->pieces)
        release(piece.type);
    process().datatypes.destroy(datatype);
}

Status type_commit(MPI_Datatype* datatype) {
    find(*datatype)->committed = true;
    return success();
}

Status type_free(MPI_Datatype* datatype) {
    Datatype* object = find(*datatype);
    if (object->predefined)
        return failure(MPI_ERR_TYPE, "{} is predefined and cannot be freed", object->name);
    if (object->handles == 1) GANTRY_TRY(object->attributes.remove_all(object->handle));
    if (find(*datatype) != object)
        return failure(MPI_ERR_TYPE, "another thread has freed this datatype meanwhile");
    release(take_handle(object));
    *datatype = MPI_DATATYPE_NULL;
    return success();
}

Status type_dup(Datatype& oldtype, MPI_Datatype* newtype) {
    Result<Datatype*> made = assemble({{0, 1, &oldtype}});
    if (!made.ok()) return std::move(made).status();
    (*made)->committed = oldtype.committed;
    (*made)->element = oldtype.element;
    Status copied = oldtype.attributes.copy_to(oldtype.handle, (*made)->attributes);
    if (!copied.ok()) {
        release(*made);
        return copied;
    }
    return give(std::move(made), {MPI_COMBINER_DUP, {}, {}, {&oldtype}}, newtype);
}

Status type_set_name(Datatype& datatype, const char* type_name) {
    datatype.name = object_name(type_name);
    return success();
}

}  // namespace gantry::mpi
