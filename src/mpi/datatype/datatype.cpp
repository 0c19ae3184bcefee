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
#include <cstdint>
#include <optional>

namespace gantry::mpi {
namespace {

std::ptrdiff_t end_of(const layout::Block& block) {
    return block.offset + static_cast<std::ptrdiff_t>(block.bytes);
}

// Whether the data of each element begins where that of the one before ends.
bool seamless(const layout::Layout& layout) {
    return end_of(layout.blocks.back()) == layout.blocks.front().offset + layout.extent;
}

// How many blocks the pieces have, before those of neighbours are merged; nothing when no integer
// holds it.
std::optional<std::uint64_t> count_blocks(const std::vector<Piece>& pieces) {
    std::uint64_t total = 0;
    for (const Piece& piece : pieces) {
        const layout::Layout& inner = piece.type->layout;
        std::uint64_t blocks = 0;
        if (__builtin_mul_overflow(piece.count, inner.blocks.size(), &blocks)) return {};
        if (blocks > 0 && seamless(inner)) blocks -= piece.count - 1;
        if (__builtin_add_overflow(total, blocks, &total)) return {};
    }
    return total;
}

// The blocks of the pieces, each merged with what lies directly before; nothing when memory is
// exhausted.
std::optional<std::vector<layout::Block>> flatten(const std::vector<Piece>& pieces) {
    std::vector<layout::Block> blocks;
    const std::optional<std::uint64_t> most = count_blocks(pieces);
    if (!most || !check_room(*most, sizeof(layout::Block)).ok()) return {};
    blocks.reserve(*most);
    const auto append = [&blocks](std::ptrdiff_t offset, Bytes bytes) {
        if (!blocks.empty() && end_of(blocks.back()) == offset)
            blocks.back().bytes += bytes;
        else
            blocks.push_back({offset, bytes});
    };
    for (const Piece& piece : pieces) {
        const layout::Layout& inner = piece.type->layout;
        if (inner.blocks.empty()) continue;
        if (inner.blocks.size() == 1 && seamless(inner)) {
            append(piece.displacement + inner.first_byte(), piece.count * inner.size);
            continue;
        }
        for (Bytes element = 0; element < piece.count; ++element)
            for (const layout::Block& block : inner.blocks)
                append(piece.displacement + static_cast<std::ptrdiff_t>(element) * inner.extent +
                           block.offset,
                       block.bytes);
    }
    return blocks;
}

// Lowest and highest byte, as bounds and as data.
struct Reach {
    bool any = false;
    std::ptrdiff_t low = 0, high = 0;
    void add(const Piece& piece, std::ptrdiff_t low_of_one, std::ptrdiff_t high_of_one) {
        const std::ptrdiff_t last =
            static_cast<std::ptrdiff_t>(piece.count - 1) * piece.type->extent();
        const std::ptrdiff_t first_byte =
            piece.displacement + low_of_one + std::min<std::ptrdiff_t>(last, 0);
        const std::ptrdiff_t end =
            piece.displacement + high_of_one + std::max<std::ptrdiff_t>(last, 0);
        low = any ? std::min(low, first_byte) : first_byte;
        high = any ? std::max(high, end) : end;
        any = true;
    }
};

}  // namespace

Datatype* assemble(std::vector<Piece> pieces) {
    std::erase_if(pieces, [](const Piece& piece) { return piece.count == 0; });
    std::optional<std::vector<layout::Block>> blocks = flatten(pieces);
    Datatype* made = blocks ? create(process().datatypes) : nullptr;
    if (made == nullptr) return nullptr;
    made->layout.blocks = std::move(*blocks);
    Reach marked, unmarked, data;
    for (const Piece& piece : pieces) {
        const Datatype& type = *piece.type;
        made->layout.size += piece.count * type.size();
        made->items += piece.count * type.items;
        made->alignment = std::max(made->alignment, type.alignment);
        Reach& bounds = type.explicit_bounds ? marked : unmarked;
        bounds.add(piece, type.lower_bound, type.lower_bound + type.extent());
        if (type.size() > 0)
            data.add(piece, type.true_lower_bound, type.true_lower_bound + type.true_extent);
        retain(piece.type);
    }
    made->pieces = std::move(pieces);
    // MPICH lets every piece count here, also beside one with explicit bounds.
    const Reach& bounds = marked.any ? marked : unmarked;
    made->lower_bound = bounds.low;
    made->layout.extent = bounds.high - bounds.low;
    made->explicit_bounds = marked.any;
    made->true_lower_bound = data.low;
    made->true_extent = data.high - data.low;
    return made;
}

void set_bounds(Datatype& datatype, std::ptrdiff_t lower_bound, std::ptrdiff_t extent) {
    datatype.lower_bound = lower_bound;
    datatype.layout.extent = extent;
    datatype.explicit_bounds = true;
}

Status give(Datatype* datatype, Recipe recipe, MPI_Datatype* newtype) {
    if (datatype == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a datatype");
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
    release(take_handle(object));
    *datatype = MPI_DATATYPE_NULL;
    return success();
}

Status type_dup(Datatype& oldtype, MPI_Datatype* newtype) {
    Datatype* made = assemble({{0, 1, &oldtype}});
    if (made == nullptr) return failure(MPI_ERR_NO_MEM, "out of memory for a datatype");
    made->committed = oldtype.committed;
    made->element = oldtype.element;
    Status copied = oldtype.attributes.copy_to(oldtype.handle, made->attributes);
    if (!copied.ok()) {
        release(made);
        return copied;
    }
    return give(made, {MPI_COMBINER_DUP, {}, {}, {&oldtype}}, newtype);
}

Status type_set_name(Datatype& datatype, const char* type_name) {
    datatype.name = object_name(type_name);
    return success();
}

}  // namespace gantry::mpi
