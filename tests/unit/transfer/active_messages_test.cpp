// SPDX-License-Identifier: BSD-3-Clause
//
// What arrives gets to whom its kind belongs; a kind of nobody's is dropped.
#include "transfer/active_messages.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gantry::transfer {
namespace {

struct Layer {
    std::vector<std::string> heard;
    std::vector<std::string>* losses = nullptr;
    std::string name;
    void on_first(int from, transport::ConstSpan header, transport::ConstSpan payload) {
        heard.push_back("first from " + std::to_string(from) + ", " +
                        std::to_string(header.size()) + "+" + std::to_string(payload.size()));
    }
    void on_second(int from, transport::ConstSpan, transport::ConstSpan) {
        heard.push_back("second from " + std::to_string(from));
    }
    void on_loss(int peer, const Status& why) {
        losses->push_back(name + " of " + std::to_string(peer) + ": " + std::string(why.text()));
    }
};

TEST(ActiveMessages, GoToTheHandlerOfTheirKind) {
    ActiveMessages messages;
    Layer below, above;
    messages.handle<&Layer::on_first>(1, below);
    messages.handle<&Layer::on_second>(2, below);
    messages.handle<&Layer::on_second>(255, above);
    const std::byte bytes[8] = {};
    messages.on_message(3, 1, {bytes, 4}, {bytes, 8});
    messages.on_message(4, 255, {}, {});
    messages.on_message(5, 2, {}, {});
    messages.on_message(6, 9, {}, {});  // nobody's: told in the log, and nothing else
    EXPECT_EQ(below.heard, (std::vector<std::string>{"first from 3, 4+8", "second from 5"}));
    EXPECT_EQ(above.heard, (std::vector<std::string>{"second from 4"}));
}

TEST(ActiveMessages, TellOfALostPeerInTheOrderOfAsking) {
    ActiveMessages messages;
    std::vector<std::string> losses;
    Layer below{{}, &losses, "below"}, above{{}, &losses, "above"};
    messages.tell_of_losses<&Layer::on_loss>(below);
    messages.tell_of_losses<&Layer::on_loss>(above);
    messages.on_peer_lost(3, failure(MPI_ERR_OTHER, "gone"));
    EXPECT_EQ(losses, (std::vector<std::string>{"below of 3: gone", "above of 3: gone"}));
}

}  // namespace
}  // namespace gantry::transfer
