// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/agreement.hpp"

#include "mpi/check/op_number.hpp"
#include "mpi/comm/comm.hpp"
#include "mpi/engine/engine.hpp"

#include <cstring>

namespace gantry::mpi {
namespace {

std::vector<Part> parts_of(const coll::Blocks& blocks, std::size_t number) {
    std::vector<Part> parts(number);
    for (std::size_t block = 0; block < number; ++block)
        parts[block] = part_of(blocks.of(static_cast<int>(block)));
    return parts;
}

// Those of a v or w form; none where the blocks do not count.
std::vector<Part> parts_of(const coll::Blocks& blocks) {
    return parts_of(blocks, blocks.counts.size());
}

}  // namespace

Agreement::Agreement(const Comm& comm, const char* function, int root, const Op* op) {
    if (!comm.engine->checks().on()) return;
    terms_ = std::make_shared<Terms>();
    Said& said = terms_->said;
    std::strncpy(said.function.data(), function, said.function.size() - 1);
    said.root = root;
    if (op != nullptr) said.op = number_of(*op);
}

Agreement& Agreement::sends(const p2p::Buffer& data) {
    if (terms_ == nullptr || data.layout == nullptr) return *this;
    terms_->said.sends = 1;
    terms_->said.sent = part_of(data);
    return *this;
}

Agreement& Agreement::receives(const p2p::Buffer& data) {
    if (terms_ == nullptr || data.layout == nullptr) return *this;
    terms_->said.receives = 1;
    terms_->said.received = part_of(data);
    return *this;
}

Agreement& Agreement::names_sent(const coll::Blocks& outgoing) {
    if (terms_ == nullptr) return *this;
    terms_->rule = Terms::Rule::listed;
    terms_->outgoing = parts_of(outgoing);
    return *this;
}

Agreement& Agreement::names_received(const coll::Blocks& incoming) {
    if (terms_ == nullptr) return *this;
    terms_->rule = Terms::Rule::listed;
    terms_->incoming = parts_of(incoming);
    return *this;
}

Agreement& Agreement::exchanges(const coll::Blocks& outgoing, const coll::Blocks& incoming) {
    if (terms_ == nullptr) return *this;
    terms_->rule = Terms::Rule::exchanged;
    terms_->outgoing = parts_of(outgoing);
    terms_->incoming = parts_of(incoming);
    return *this;
}

Agreement& Agreement::exchanges(const coll::Blocks& outgoing, const coll::Blocks& incoming,
                                std::shared_ptr<const coll::Neighbors> neighbors) {
    if (terms_ == nullptr) return *this;
    terms_->rule = Terms::Rule::along_edges;
    terms_->outgoing = parts_of(outgoing, neighbors->destinations.size());
    terms_->incoming = parts_of(incoming, neighbors->sources.size());
    terms_->neighbors = std::move(neighbors);
    return *this;
}

Agreement& Agreement::divides(const coll::Blocks& shares) {
    if (terms_ == nullptr) return *this;
    terms_->rule = Terms::Rule::shares;
    terms_->incoming = parts_of(shares);
    return *this;
}

}  // namespace gantry::mpi
