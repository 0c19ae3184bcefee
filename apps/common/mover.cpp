// SPDX-License-Identifier: BSD-3-Clause
#include "mover.hpp"

namespace gantry::apps {
namespace {

Word address_in(const Fields& fields, int field, const Box& box) {
    return reinterpret_cast<Word>(fields.field(field)) +
           static_cast<Word>(fields.place(box.lo[0], box.lo[1], box.lo[2])) * fields.element();
}

Move move_of(const Fields& fields, const Box& box, Word from, Word to, bool from_packed,
             bool to_packed) {
    const Whole row = box.n[0], plane = box.n[0] * box.n[1];
    return {from,
            to,
            from_packed ? row : fields.row(),
            from_packed ? plane : fields.plane(),
            to_packed ? row : fields.row(),
            to_packed ? plane : fields.plane(),
            {box.n[0], box.n[1], box.n[2]},
            0};
}

}  // namespace

Move pack_move(const Fields& fields, const Piece& piece, const void* packed) {
    return move_of(fields, piece.from, address_in(fields, piece.field, piece.from),
                   reinterpret_cast<Word>(packed), false, true);
}
Move unpack_move(const Fields& fields, const Piece& piece, const void* packed) {
    return move_of(fields, piece.to, reinterpret_cast<Word>(packed),
                   address_in(fields, piece.field, piece.to), true, false);
}
Move wrap_move(const Fields& fields, const Piece& piece) {
    return move_of(fields, piece.from, address_in(fields, piece.field, piece.from),
                   address_in(fields, piece.field, piece.to), false, false);
}

Whole values_of(const Message& message) {
    Whole values = 0;
    for (const Piece& piece : message.pieces)
        values += values_of(piece.from);
    return values;
}

Mover::Mover(Machine& machine, std::size_t element, std::vector<Move> moves)
    : machine_(machine), kernel_(element == 8 ? kMove8 : kMove4) {
    for (Move& move : moves) {
        move.first = work_.tiles;
        work_.tiles += tiles_of(move.n[0] * move.n[1] * move.n[2]);
    }
    const std::size_t bytes = moves.size() * sizeof(Move);
    table_ = machine.allocate(bytes);
    if (bytes > 0) machine.upload(table_, moves.data(), bytes);
    work_.table = reinterpret_cast<Word>(table_);
    work_.moves = static_cast<Whole>(moves.size());
}

Mover::~Mover() {
    machine_.release(table_);
}

void Mover::run() {
    if (work_.moves > 0) machine_.launch(Stream::edge, kernel_, &work_, work_.items());
}

}  // namespace gantry::apps
