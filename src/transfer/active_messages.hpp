// SPDX-License-Identifier: BSD-3-Clause
//
// ActiveMessages: what transports deliver to. A message has a kind, and each kind one handler; the
// layers above register theirs (point-to-point, windows), and learn of lost peers in the order in
// which they asked. Handlers run inside progress() and only start work.
//
//     messages.handle<&Receiver::on_chunk>(kChunk, receiver);
#pragma once

#include "transport/transport.hpp"

#include <array>
#include <vector>

namespace gantry::transfer {

class ActiveMessages final : public transport::Receiver {
  public:
    // `Method` is a member function (int from, ConstSpan header, ConstSpan payload) of the owner, which
    // outlives this.
    template <auto Method, class Owner>
    void handle(transport::MessageKind kind, Owner& owner) {
        handlers_[kind] = {&owner, [](void* of, int from, transport::ConstSpan header,
                                      transport::ConstSpan payload) {
                               (static_cast<Owner*>(of)->*Method)(from, header, payload);
                           }};
    }
    // `Method` is a member function (int peer, const Status& why).
    template <auto Method, class Owner>
    void tell_of_losses(Owner& owner) {
        losses_.push_back({&owner, [](void* of, int peer, const Status& why) {
                               (static_cast<Owner*>(of)->*Method)(peer, why);
                           }});
    }

    void on_message(int from, transport::MessageKind kind, transport::ConstSpan header,
                    transport::ConstSpan payload) override {
        const Handler& handler = handlers_[kind];
        if (handler.call == nullptr) [[unlikely]]
            return refuse(from, kind);
        handler.call(handler.owner, from, header, payload);
    }
    void on_peer_lost(int peer, const Status& why) override {
        for (const Loss& each : losses_)
            each.call(each.owner, peer, why);
    }

  private:
    static void refuse(int from, transport::MessageKind kind);
    struct Handler {
        void* owner = nullptr;
        void (*call)(void*, int, transport::ConstSpan, transport::ConstSpan) = nullptr;
    };
    struct Loss {
        void* owner;
        void (*call)(void*, int, const Status&);
    };
    std::array<Handler, 256> handlers_{};
    std::vector<Loss> losses_;
};

}  // namespace gantry::transfer
