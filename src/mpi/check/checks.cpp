// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/checks.hpp"

#include "base/log.hpp"
#include "layout/rows.hpp"
#include "mpi/bodies.hpp"
#include "mpi/check/signature.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/request/status.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gantry::mpi {
namespace {

bool is_character(MPI_Datatype handle) {
    return handle == MPI_CHAR || handle == MPI_CHARACTER || handle == MPI_WCHAR;
}

// Whether two blocks of a buffer share bytes; of very many blocks the first ones are looked at.
bool overlaps_itself(const p2p::Buffer& buffer) {
    constexpr std::size_t kMostBlocks = 1 << 16;
    if (buffer.contiguous() || buffer.bytes() == 0) return false;
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> blocks;  // begin and end
    layout::RowWalk walk(*buffer.layout, 0, buffer.bytes());
    for (layout::Rows rows; blocks.size() < kMostBlocks && walk.next(rows);)
        for (Bytes row = 0; row < rows.count && blocks.size() < kMostBlocks; ++row) {
            const std::ptrdiff_t begin =
                rows.offset + static_cast<std::ptrdiff_t>(row * rows.pitch);
            blocks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(rows.width));
        }
    std::ranges::sort(blocks);
    for (std::size_t i = 1; i < blocks.size(); ++i)
        if (blocks[i].first < blocks[i - 1].second) return true;
    return false;
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

// Whether so many bytes of packed data end inside a basic item of the datatype.
bool end_inside_an_item(const Datatype& datatype, Bytes bytes) {
    MPI_Status told{};
    set_bytes(told, bytes);
    MPI_Count items = 0;
    return get_elements(&told, const_cast<Datatype&>(datatype), &items).ok() &&
           items == MPI_UNDEFINED;
}

}  // namespace

const p2p::Buffer& Checks::of_program(const p2p::Buffer& buffer) const {
    if (stand_ins_.empty()) return buffer;
    const auto stands_for = stand_ins_.find(buffer.address);
    return stands_for != stand_ins_.end() ? stands_for->second : buffer;
}

std::optional<layout::Signature> Checks::of(const p2p::Buffer& buffer) const {
    const p2p::Buffer& named = of_program(buffer);
    const Datatype* const datatype = datatype_of(named);
    if (datatype == nullptr || named.bytes() == 0) return std::nullopt;
    return signature_of(*datatype, named.count);
}

Status Checks::compare(const layout::Signature& sent, Bytes bytes, int source,
                       const p2p::Buffer& receive) const {
    const p2p::Buffer& named = of_program(receive);
    const Datatype* const datatype = datatype_of(named);
    if (datatype == nullptr || bytes > named.bytes()) return success();  // that is another error
    if (!may_go_into(sent, *datatype, named.count))
        return failure(MPI_ERR_TYPE, "the message from rank {} is {}; the receive is {}", source,
                       words(sent), words(signature_of(*datatype, named.count)));
    if (end_inside_an_item(*datatype, bytes))
        return failure(MPI_ERR_TYPE,
                       "the message of {} bytes from rank {} ends inside a basic item of the "
                       "receive's datatype: it was sent with another one",
                       bytes, source);
    return success();
}

Status Checks::one_sided(const p2p::Buffer& from, const p2p::Buffer& into) const {
    if (!on_) return success();
    const Datatype *const source = datatype_of(from), *const sink = datatype_of(into);
    if (source == nullptr || sink == nullptr) return success();
    if (overlaps_itself(into))
        return failure(MPI_ERR_TYPE,
                       "the datatype that data is to go into names some bytes twice ({})",
                       words(signature_of(*sink, into.count)));
    const Signature sent = signature_of(*source, from.count);
    if (may_go_into(sent, *sink, into.count)) return success();
    return failure(MPI_ERR_TYPE, "the data is {}; it is to go into {}", words(sent),
                   words(signature_of(*sink, into.count)));
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
    add_held(list, p.files, "file");
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
