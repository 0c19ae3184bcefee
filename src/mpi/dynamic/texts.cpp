// SPDX-License-Identifier: BSD-3-Clause
//
// Texts of any length inside a team.
#include "coll/bcast.hpp"
#include "coll/exchange.hpp"
#include "transfer/buffer.hpp"
#include "mpi/dynamic/handshake.hpp"

#include <cstring>

namespace gantry::mpi {

std::string packed(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) {
        const std::uint64_t length = text.size();
        all.append(reinterpret_cast<const char*>(&length), sizeof length);
        all.append(text);
    }
    return all;
}

std::vector<std::string> unpacked(std::string_view text) {
    std::vector<std::string> texts;
    std::uint64_t length = 0;
    while (text.size() >= sizeof length) {
        std::memcpy(&length, text.data(), sizeof length);
        text.remove_prefix(sizeof length);
        texts.emplace_back(text.substr(0, length));
        text.remove_prefix(std::min<std::size_t>(length, text.size()));
    }
    return texts;
}

Task<Status> tell(Executor& executor, coll::Team team, int root, std::string* text) {
    std::uint64_t length = text->size();
    const p2p::Buffer head = transfer::bytes_buffer(&length, sizeof length);
    Status told = co_await coll::bcast(executor, team, head, root);
    GANTRY_CO_TRY(told);
    text->resize(length);
    const p2p::Buffer body = transfer::bytes_buffer(text->data(), text->size());
    told = co_await coll::bcast(executor, team, body, root);
    co_return told;
}

}  // namespace gantry::mpi
