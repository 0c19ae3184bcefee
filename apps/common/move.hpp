// SPDX-License-Identifier: BSD-3-Clause
//
// apps_move_8 and apps_move_4: copies many boxes of doubles or floats between places of one memory, in
// one launch. That is packing, unpacking, and what a periodic axis of a single rank needs.
#pragma once

#include "cells.hpp"

namespace gantry::apps {

// One box. Pitches count elements; a packed box has those of its own shape.
struct Move {
    Word from, to;
    Whole from_row, from_plane, to_row, to_plane;
    Whole n[3];
    Whole first;  // number of its first tile in the launch
};

// A tile is as many elements as a block of a GPU has threads.
inline constexpr Whole kTile = 256;

constexpr Whole tiles_of(Whole elements) {
    return (elements + kTile - 1) / kTile;
}

struct MoveWork {
    Word table;  // address of Moves, in the memory that they are about
    Whole moves;
    Whole tiles;
    APPS_CELL Whole items() const { return tiles * kTile; }
};

// `at`: where the table's addresses are for whoever runs this.
template <class Unit, class Place>
APPS_CELL void move_item(const Move* moves, const MoveWork& work, Whole item, Place at) {
    const Whole tile = item / kTile;
    Whole low = 0, high = work.moves - 1;  // the last move that begins at or before this tile
    while (low < high) {
        const Whole middle = (low + high + 1) / 2;
        if (moves[middle].first <= tile)
            low = middle;
        else
            high = middle - 1;
    }
    const Move& move = moves[low];
    const Whole element = item - move.first * kTile;
    if (element >= move.n[0] * move.n[1] * move.n[2]) return;
    const auto number = static_cast<unsigned>(element);
    const auto across = static_cast<unsigned>(move.n[0]), up = static_cast<unsigned>(move.n[1]);
    const unsigned row = number / across, x = number - row * across;
    const unsigned z = row / up, y = row - z * up;
    const auto* from = static_cast<const Unit*>(at(move.from));
    auto* to = static_cast<Unit*>(at(move.to));
    to[x + y * move.to_row + z * move.to_plane] = from[x + y * move.from_row + z * move.from_plane];
}

}  // namespace gantry::apps
