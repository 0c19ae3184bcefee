// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/agreement.hpp"

#include "mpi/check/op_number.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/engine.hpp"

#include <fmt/ranges.h>

#include <cstring>

namespace gantry::mpi {
namespace {

std::vector<Part> parts_of(const coll::Blocks& blocks, std::size_t number) {
    std::vector<Part> parts(number);
    for (std::size_t block = 0; block < number; ++block)
        parts[block] = part_of(blocks.of(static_cast<int>(block)));
    return parts;
}

}  // namespace

Agreement::Agreement(const Comm& comm, const char* function, int root, const Op* op) {
    if (!comm.engine->checks().on()) return;
    // Ranks of another job may check nothing, and tell nothing.
    if (comm.engine->outsiders().among(comm.collective.peers)) return;
    terms_ = std::make_shared<Terms>();
    Said& said = terms_->said;
    std::strncpy(said.function.data(), function, said.function.size() - 1);
    said.root = root;
    if (op != nullptr) said.op = number_of(*op);
}

Agreement& Agreement::names(const std::string& arguments) {
    if (terms_ == nullptr) return *this;
    Said& said = terms_->said;
    std::strncpy(said.arguments.data(), arguments.c_str(), said.arguments.size() - 1);
    said.hash = std::hash<std::string>{}(arguments);
    return *this;
}

Agreement& Agreement::names(const char* what, std::span<const int> numbers) {
    if (terms_ == nullptr) return *this;
    return names(fmt::format("{} {{{}}}", what, fmt::join(numbers, ", ")));
}

void Terms::sends(const p2p::Buffer& data) {
    if (data.layout == nullptr) return;
    said.sends = 1;
    said.sent = part_of(data);
}

void Terms::receives(const p2p::Buffer& data) {
    if (data.layout == nullptr) return;
    said.receives = 1;
    said.received = part_of(data);
}

void Terms::lists(Rule its_rule, const coll::Blocks* sent, const coll::Blocks* received) {
    rule = its_rule;
    if (sent != nullptr) outgoing = parts_of(*sent, sent->counts.size());
    if (received != nullptr) incoming = parts_of(*received, received->counts.size());
}

void Terms::along_edges(const coll::Blocks& sent, const coll::Blocks& received,
                        std::shared_ptr<const coll::Neighbors> edges) {
    rule = Rule::along_edges;
    outgoing = parts_of(sent, edges->destinations.size());
    incoming = parts_of(received, edges->sources.size());
    neighbors = std::move(edges);
}

}  // namespace gantry::mpi
