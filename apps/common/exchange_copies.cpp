// SPDX-License-Identifier: BSD-3-Clause
//
// copies: what a program writes first. Each piece is a strided copy to the host, a message is host
// memory, and what comes is copied back piece by piece.
#include "exchange.hpp"
#include "mover.hpp"

namespace gantry::apps {
namespace {

class Copies final : public Exchange {
  public:
    Copies(const ExchangeSetting& setting, const Pattern& pattern) : Exchange(setting, pattern) {
        for (const Message& message : messages_) {
            const std::size_t bytes =
                static_cast<std::size_t>(values_of(message)) * setting.fields.element();
            out_.push_back(machine().allocate_host(bytes));
            in_.push_back(machine().allocate_host(bytes));
        }
    }
    ~Copies() override {
        for (const std::vector<void*>* side : {&out_, &in_})
            for (void* memory : *side)
                machine().release_host(memory);
    }

  private:
    const Fields& fields() const { return setting_.fields; }

    Rows rows(const Box& box) const {
        const std::size_t element = fields().element();
        return {static_cast<std::size_t>(box.n[0]) * element, static_cast<std::size_t>(box.n[1]),
                static_cast<std::size_t>(box.n[2]),
                static_cast<std::size_t>(fields().row()) * element,
                static_cast<std::size_t>(fields().padded(1))};
    }
    std::byte* place(int field, const Box& box) const {
        return fields().as<std::byte>(field) +
               static_cast<std::size_t>(fields().place(box.lo[0], box.lo[1], box.lo[2])) *
                   fields().element();
    }

    void send() override {
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            auto* packed = static_cast<std::byte*>(out_[m]);
            for (const Piece& piece : messages_[m].pieces) {
                if (messages_[m].to == MPI_PROC_NULL) continue;
                const Rows shape = rows(piece.from);
                machine().start_strided_download(packed, place(piece.field, piece.from), shape);
                packed += shape.width * shape.rows * shape.planes;
            }
        }
        machine().wait(Stream::edge);
        setting_.watch.lap(Part::to_host);
        requests_.clear();
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            const Message& message = messages_[m];
            const int count = static_cast<int>(values_of(message));
            MPI_Irecv(in_[m], count, fields().type(), message.from, message.tag, setting_.comm,
                      &requests_.emplace_back());
            MPI_Isend(out_[m], count, fields().type(), message.to, message.tag, setting_.comm,
                      &requests_.emplace_back());
        }
        setting_.watch.lap(Part::network);
    }

    void receive() override {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        setting_.watch.lap(Part::network);
        for (std::size_t m = 0; m < messages_.size(); ++m) {
            const auto* packed = static_cast<const std::byte*>(in_[m]);
            for (const Piece& piece : messages_[m].pieces) {
                if (messages_[m].from == MPI_PROC_NULL) continue;
                const Rows shape = rows(piece.to);
                machine().start_strided_upload(place(piece.field, piece.to), packed, shape);
                packed += shape.width * shape.rows * shape.planes;
            }
        }
        machine().wait(Stream::edge);
        setting_.watch.lap(Part::to_device);
    }

    std::vector<void*> out_, in_;
    std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Exchange> make_copies(const ExchangeSetting& setting, const Pattern& pattern) {
    return std::make_unique<Copies>(setting, pattern);
}

}  // namespace gantry::apps
