// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/checks.hpp"

#include "base/log.hpp"
#include "mpi/bodies.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

#include <string>

namespace gantry::mpi {
namespace {

bool is_character(MPI_Datatype handle) {
    return handle == MPI_CHAR || handle == MPI_CHARACTER || handle == MPI_WCHAR;
}

struct List {
    std::string text;

    void add(std::size_t number, const char* noun, const std::string& names) {
        if (number == 0) return;
        text += fmt::format("{}{} {}{}{}{}{}", text.empty() ? "" : ", ", number, noun,
                            number == 1 ? "" : "s", names.empty() ? "" : " (", names,
                            names.empty() ? "" : ")");
    }
};

template <class T>
std::string name_of(const T& object) {
    if constexpr (requires { std::string(object.name); })
        return object.name;
    else
        return {};
}

// Those of a slab to which the program has a handle.
template <class T>
void add_held(List& list, Slab<T>& slab, const char* noun) {
    std::size_t number = 0;
    std::string names;
    slab.for_each([&](T& object) {
        if (object.predefined || !object.valid()) return;
        ++number;
        const std::string name = name_of(object);
        if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
    });
    list.add(number, noun, names);
}

// Requests know the layout of their datatype alone.
Datatype* datatype_with(const layout::Layout* layout) {
    Datatype* found = nullptr;
    process().datatypes.for_each([&](Datatype& datatype) {
        if (&datatype.layout == layout) found = &datatype;
    });
    return found;
}

}  // namespace

Status Checks::received(const p2p::Request& receive) const {
    if (!on_ || receive.kind != p2p::RequestKind::receive || receive.outcome.cancelled)
        return success();
    Datatype* datatype = datatype_with(receive.buffer.layout);
    if (datatype == nullptr) return success();
    MPI_Status told{};
    set_bytes(told, receive.outcome.bytes);
    MPI_Count items = 0;
    GANTRY_TRY(get_elements(&told, *datatype, &items));
    if (items != MPI_UNDEFINED) return success();
    return failure(MPI_ERR_TYPE,
                   "the message of {} bytes from rank {} ends inside a basic item of the receive's "
                   "datatype: it was sent with another one",
                   receive.outcome.bytes, receive.outcome.source);
}

void Checks::reduction(const Op& op, const Datatype& datatype) {
    if (!on_ || said_characters_ || !op.predefined || !is_character(datatype.handle)) return;
    said_characters_ = true;
    log::warn(
        "mpi: {} of {}: the standard has no reduction of characters; they are taken as signed "
        "integers, as other libraries take them (MPI_SIGNED_CHAR says so)",
        op.name, datatype.name);
}

void Checks::leaks() const {
    if (!on_) return;
    Process& p = process();
    List list;
    add_held(list, p.comms, "communicator");
    add_held(list, p.datatypes, "datatype");
    add_held(list, p.groups, "group");
    add_held(list, p.infos, "info object");
    add_held(list, p.wins, "window");
    add_held(list, p.errhandlers, "error handler");
    const auto open_ops = [&p] {
        std::size_t number = 0;
        p.ops.for_each([&](Op& op) { number += !op.predefined && op.valid() ? 1 : 0; });
        return number;
    };
    list.add(open_ops(), "reduction operation", {});
    list.add(p.messages.live(), "matched message", {});
    list.add(p.engine->requests().held(), "request", {});
    if (!list.text.empty()) log::warn("mpi: MPI_Finalize finds handles not freed: {}", list.text);
}

}  // namespace gantry::mpi
