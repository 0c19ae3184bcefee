// SPDX-License-Identifier: BSD-3-Clause
//
// The sides of a collective that moves blocks, made from MPI's arguments. A side whose datatype is
// null does not count on this rank. `blocks` is how many blocks there are.
#pragma once

#include "coll/blocks.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/buffer.hpp"

namespace gantry::mpi {

// A side of one block.
p2p::Buffer one_block(const void* address, MPI_Count count, const Datatype* datatype);
// Blocks of one size that follow each other.
coll::Blocks equal_blocks(const void* address, MPI_Count count, const Datatype* datatype);
// The v forms: a count and a displacement for each block.
coll::Blocks listed_blocks(const void* address, const MPI_Count* counts, const MPI_Aint* displs,
                           const Datatype* datatype, int blocks);
// The w forms: also a datatype for each block.
coll::Blocks typed_blocks(const void* address, const MPI_Count* counts, const MPI_Aint* displs,
                          const MPI_Datatype* types, int blocks);

// MPI_ERR_BUFFER if `part` is this rank's block of `whole`, which would be read and written at
// once: MPI_IN_PLACE is for that. Also refused is a part that is the first rank's block, the usual
// mistake.
Status check_distinct(const p2p::Buffer& part, const coll::Blocks& whole, int rank);

}  // namespace gantry::mpi
