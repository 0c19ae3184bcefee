// SPDX-License-Identifier: BSD-3-Clause
#include "job/store_text.hpp"

#include <charconv>
#include <cstdint>

namespace gantry::job {
namespace {

// The URL-safe alphabet without padding: '=' and '/' mean something in PMI lines.
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string base64(std::string_view bytes) {
    std::string text;
    text.reserve((bytes.size() * 4 + 2) / 3);
    std::uint32_t window = 0;
    unsigned bits = 0;
    for (char c : bytes) {
        window = window << 8 | static_cast<unsigned char>(c);
        bits += 8;
        while (bits >= 6) {
            bits -= 6;
            text.push_back(kAlphabet[window >> bits & 63]);
        }
    }
    if (bits > 0) text.push_back(kAlphabet[window << (6 - bits) & 63]);
    return text;
}

std::optional<std::string> from_base64(std::string_view text) {
    std::string bytes;
    bytes.reserve(text.size() * 3 / 4);
    std::uint32_t window = 0;
    unsigned bits = 0;
    for (char c : text) {
        const std::size_t digit = kAlphabet.find(c);
        if (digit == std::string_view::npos) return std::nullopt;
        window = window << 6 | static_cast<std::uint32_t>(digit);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes.push_back(static_cast<char>(window >> bits & 255));
        }
    }
    return bytes;
}

std::vector<std::string> split_value(std::string_view bytes, std::size_t longest) {
    const std::string text = base64(bytes);
    constexpr std::size_t kRoomForCount = 11;  // ten digits and the dot
    const std::size_t per_piece = longest - kRoomForCount;
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size() || pieces.empty(); at += per_piece)
        pieces.push_back(text.substr(at, per_piece));
    pieces.front().insert(0, std::to_string(pieces.size()) + ".");
    return pieces;
}

std::optional<std::size_t> take_piece_count(std::string_view& first_piece) {
    std::size_t count = 0;
    const char* last = first_piece.data() + first_piece.size();
    const auto [end, error] = std::from_chars(first_piece.data(), last, count);
    if (error != std::errc{} || end == last || *end != '.' || count == 0) return std::nullopt;
    first_piece.remove_prefix(static_cast<std::size_t>(end - first_piece.data()) + 1);
    return count;
}

}  // namespace gantry::job
