// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/signature.hpp"

#include "base/status.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/datatype/pairs.hpp"
#include "mpi/engine/process.hpp"

#include <algorithm>

namespace gantry::mpi {
namespace {

using layout::Element;

// By its handle, a small constant; 0: a Fortran type that was asked for by its precision.
std::uint16_t number_of(const Datatype& predefined) {
    return is_predefined(predefined.handle)
               ? static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(predefined.handle))
               : std::uint16_t{0};
}

std::string name_of(const Signature::Run& run) {
    const Datatype* const datatype =
        run.type != 0 ? find(reinterpret_cast<MPI_Datatype>(std::uintptr_t{run.type})) : nullptr;
    return fmt::format("{} of {}", std::uint64_t{run.count},
                       datatype != nullptr ? datatype->name : "a Fortran type");
}

Signature signature_of_predefined(const Datatype& predefined) {
    if (const PairKind* pair = pair_kind(predefined.handle))
        return joined(signature_of_predefined(*find(pair->value)),
                      signature_of_predefined(*find(pair->index)));
    const std::uint16_t number = number_of(predefined);
    if (predefined.element == Element::byte || predefined.element == Element::none)
        return layout::signature_of_byte(number);  // or a type that this platform lacks
    return layout::signature_of_item(static_cast<std::uint32_t>(predefined.element), number);
}

// Of one element. Remembered in derived types, so that nestings cost what their levels do.
const Signature& signature_of_one(const Datatype& datatype) {
    if (datatype.signature) return *datatype.signature;
    Signature one;
    if (datatype.predefined) one = signature_of_predefined(datatype);
    for (const Piece& piece : datatype.pieces)
        one = joined(one, signature_of(*piece.type, piece.elements()));
    return datatype.signature.emplace(one);
}

}  // namespace

const Datatype* datatype_of(const p2p::Buffer& buffer) {
    const Datatype* const datatype = process().datatypes.around(buffer.layout);
    return datatype != nullptr && &datatype->layout == buffer.layout ? datatype : nullptr;
}

Signature signature_of(const Datatype& datatype, Bytes count) {
    return repeated(signature_of_one(datatype), count);
}

Signature beginning_of(const Datatype& datatype, Bytes count, Bytes items) {
    Signature all;
    const Datatype* inside = &datatype;
    Bytes elements = count;
    // Down to the element in which the items end, level by level.
    while (items > 0) {
        const Signature& one = signature_of_one(*inside);
        const Bytes whole = one.items > 0 ? std::min(items / one.items, elements) : 0;
        all = joined(all, repeated(one, whole));
        items -= whole * one.items;
        if (items == 0 || whole == elements) break;
        if (const PairKind* pair = pair_kind(inside->handle))
            return joined(all, signature_of_one(*find(pair->value)));
        for (const Piece& piece : inside->pieces) {
            const Signature part = signature_of(*piece.type, piece.elements());
            if (items < part.items) {
                inside = piece.type;
                elements = piece.elements();
                break;
            }
            all = joined(all, part);
            items -= part.items;
        }
    }
    return all;
}

bool may_go_into(const Signature& sent, const Datatype& datatype, Bytes count) {
    const Signature room = signature_of(datatype, count);
    if (sent.matches_anything() || room.matches_anything()) return true;
    if (sent.items > room.items) return false;
    return sent == (sent.items == room.items ? room : beginning_of(datatype, count, sent.items));
}

std::string words(const Signature& signature) {
    if (signature.items == 0) return "no data";
    std::string begins = name_of(signature.begins[0]);
    if (signature.begins[1].count != 0) begins += " and " + name_of(signature.begins[1]);
    if (signature.is_described()) return begins;
    return fmt::format("{} basic items that begin with {}", signature.items, begins);
}

}  // namespace gantry::mpi
