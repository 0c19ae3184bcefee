// SPDX-License-Identifier: BSD-3-Clause
//
// What one exchange moves: for each neighbour a message of pieces, and what a periodic axis of a single
// rank moves inside the rank. All blocks have one shape, so a piece says where it lies at both ends. It is
// plain data, made without a call of MPI or a driver: what any rank of any grid exchanges can be asked for.
//
//   own_to_halo   the neighbour wants my cells beside him:      [halo|  own ##]  ->  [##|own   |halo]
//   halo_to_own   I computed cells that are his, in my halo:    [halo|  own|##]  ->  [halo|## own   ]
#pragma once

#include "extent.hpp"
#include "grid.hpp"

#include <vector>

namespace gantry::apps {

struct Piece {
    int field;
    Box from, to;  // the sender's, the receiver's: equal sizes
};

struct Message {
    int tag;       // the way, as a number: the same at both ends
    int to, from;  // ranks, or MPI_PROC_NULL
    std::vector<Piece> pieces;
};

struct Pattern {
    std::vector<std::vector<Piece>> local;  // groups: each is done when the next begins
    std::vector<Message> messages;

    Whole values_sent() const;  // by this rank, to others
    int messages_sent() const;
};

enum class Direction { own_to_halo, halo_to_own };

// One rule of an exchange: `field` crosses `way`. What moved into the halo by `moved` has come from inside the block,
// so at one end of each other divided axis there is nothing yet: that comes across an edge.
struct Crossing {
    int field;
    int way[3];
    Direction direction;
    int moved[3] = {0, 0, 0};
};

// Axes that are not divided are wrapped inside the rank first (if the grid is periodic), so their halos
// ride along with the messages of the others; edges between two divided axes have messages of their own.
Pattern pattern_of(const Grid& grid, const Extent& extent, const std::vector<Crossing>& crossings);

// `depth` planes of each field to both neighbours along an axis, with the halos of the `ready` axes.
Pattern planes_along(const Grid& grid, const Extent& extent, int axis, Whole depth,
                     const std::vector<int>& which, const bool ready[3]);

}  // namespace gantry::apps
