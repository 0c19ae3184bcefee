// SPDX-License-Identifier: BSD-3-Clause
#include "pattern.hpp"

#include <algorithm>

namespace gantry::apps {
namespace {

int tag_of(const int way[3]) {
    return (way[0] + 1) + 3 * (way[1] + 1) + 9 * (way[2] + 1);
}

// `wide`: along which axes the halo is part of the piece.
Piece piece_of(const Extent& extent, int field, const int way[3], Direction direction, Whole depth,
               const bool wide[3]) {
    Piece piece{field, {}, {}};
    const Whole halo = extent.halo();
    for (int axis = 0; axis < 3; ++axis) {
        const Whole inner = extent.inner(axis);
        Whole from = wide[axis] ? 0 : halo, to = from;
        Whole n = wide[axis] ? inner + 2 * halo : inner;
        if (way[axis] != 0) {
            const bool own = direction == Direction::own_to_halo, up = way[axis] > 0;
            n = depth;
            if (up) {
                from = own ? halo + inner - depth : halo + inner;
                to = own ? halo - depth : halo;
            } else {
                from = own ? halo : halo - depth;
                to = own ? halo + inner : halo + inner - depth;
            }
        }
        piece.from.lo[axis] = from;
        piece.to.lo[axis] = to;
        piece.from.n[axis] = piece.to.n[axis] = n;
    }
    return piece;
}

Message& message_for(Pattern& pattern, const Grid& grid, const int way[3]) {
    const int tag = tag_of(way);
    for (Message& message : pattern.messages)
        if (message.tag == tag) return message;
    const int back[3] = {-way[0], -way[1], -way[2]};
    pattern.messages.push_back({tag, grid.neighbour(way), grid.neighbour(back), {}});
    return pattern.messages.back();
}

}  // namespace

Whole Pattern::values_sent() const {
    Whole values = 0;
    for (const Message& message : messages)
        for (const Piece& piece : message.pieces)
            if (message.to != MPI_PROC_NULL)
                values += piece.from.n[0] * piece.from.n[1] * piece.from.n[2];
    return values;
}

int Pattern::messages_sent() const {
    return static_cast<int>(
        std::count_if(messages.begin(), messages.end(),
                      [](const Message& message) { return message.to != MPI_PROC_NULL; }));
}

Pattern pattern_of(const Grid& grid, const Extent& extent, const std::vector<Crossing>& crossings) {
    Pattern pattern;
    for (int axis = 0; axis < 3 && grid.periodic; ++axis) {
        if (grid.divided(axis)) continue;
        // All that crosses this axis, whatever else it crosses: with the whole extent of the others.
        std::vector<Piece> group;
        for (const Crossing& crossing : crossings) {
            if (crossing.way[axis] == 0) continue;
            int way[3] = {0, 0, 0};
            way[axis] = crossing.way[axis];
            const bool wide[3] = {axis != 0, axis != 1, axis != 2};
            const Piece piece = piece_of(extent, crossing.field, way, crossing.direction, 1, wide);
            const bool known =
                std::any_of(group.begin(), group.end(), [&piece](const Piece& other) {
                    return other.field == piece.field && other.to.lo[0] == piece.to.lo[0] &&
                           other.to.lo[1] == piece.to.lo[1] && other.to.lo[2] == piece.to.lo[2];
                });
            if (!known) group.push_back(piece);
        }
        if (!group.empty()) pattern.local.push_back(group);
    }
    const bool wide[3] = {!grid.divided(0), !grid.divided(1), !grid.divided(2)};
    for (const Crossing& crossing : crossings) {
        // What crosses an axis that is not divided has been there already.
        bool mine = true;
        for (int axis = 0; axis < 3; ++axis)
            mine = mine && (crossing.way[axis] == 0 || grid.divided(axis));
        if (!mine) continue;
        Piece piece = piece_of(extent, crossing.field, crossing.way, crossing.direction, 1, wide);
        for (int axis = 0; axis < 3; ++axis) {
            if (wide[axis] || crossing.way[axis] != 0 || crossing.moved[axis] == 0) continue;
            for (Box* box : {&piece.from, &piece.to}) {
                if (crossing.moved[axis] > 0) ++box->lo[axis];
                --box->n[axis];
            }
        }
        message_for(pattern, grid, crossing.way).pieces.push_back(piece);
    }
    return pattern;
}

Pattern planes_along(const Grid& grid, const Extent& extent, int axis, Whole depth,
                     const std::vector<int>& which, const bool ready[3]) {
    Pattern pattern;
    if (!grid.divided(axis)) return pattern;
    for (int side : {-1, 1}) {
        int way[3] = {0, 0, 0};
        way[axis] = side;
        for (int field : which)
            message_for(pattern, grid, way)
                .pieces.push_back(
                    piece_of(extent, field, way, Direction::own_to_halo, depth, ready));
    }
    return pattern;
}

}  // namespace gantry::apps
