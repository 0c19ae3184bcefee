// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/coll/block_arguments.hpp"

namespace gantry::mpi {

p2p::Buffer one_block(const void* address, MPI_Count count, const Datatype* datatype) {
    return datatype != nullptr ? buffer(address, count, *datatype) : p2p::Buffer{};
}

coll::Blocks equal_blocks(const void* address, MPI_Count count, const Datatype* datatype) {
    coll::Blocks made;
    made.address = const_cast<void*>(address);
    made.count = static_cast<std::uint64_t>(count);
    made.layout = datatype != nullptr ? &datatype->layout : nullptr;
    return made;
}

coll::Blocks listed_blocks(const void* address, const MPI_Count* counts, const MPI_Aint* displs,
                           const Datatype* datatype, int blocks) {
    coll::Blocks made = equal_blocks(address, 0, datatype);
    if (datatype == nullptr) return made;
    made.counts.assign(counts, counts + blocks);
    made.displacements.assign(displs, displs + blocks);
    return made;
}

coll::Blocks typed_blocks(const void* address, const MPI_Count* counts, const MPI_Aint* displs,
                          const MPI_Datatype* types, int blocks) {
    coll::Blocks made = equal_blocks(address, 0, nullptr);
    if (types == nullptr) return made;
    made.counts.assign(counts, counts + blocks);
    made.displacements.assign(displs, displs + blocks);
    // A block of no elements may have no type.
    for (int block = 0; block < blocks; ++block) {
        const Datatype* type = find(types[block]);
        made.layouts.push_back(type != nullptr ? &type->layout : &find(MPI_BYTE)->layout);
    }
    return made;
}

Status check_distinct(const p2p::Buffer& part, const coll::Blocks& whole, int rank) {
    if (part.bytes() == 0 || part.address == nullptr || whole.address == nullptr) return success();
    const auto is_part = [&](const p2p::Buffer& block) {
        return block.bytes() != 0 && block.address == part.address;
    };
    if (!is_part(whole.of(rank)) && !is_part(whole.of(0))) return success();
    return failure(MPI_ERR_BUFFER, "sendbuf and recvbuf overlap at {}: use MPI_IN_PLACE",
                   part.address);
}

}  // namespace gantry::mpi
