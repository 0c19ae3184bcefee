// SPDX-License-Identifier: BSD-3-Clause
#include "job/store_text.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gantry::job {
namespace {

std::string join(const std::vector<std::string>& pieces) {
    std::string_view first = pieces.front();
    EXPECT_EQ(take_piece_count(first), pieces.size());
    std::string text(first);
    for (std::size_t i = 1; i < pieces.size(); ++i)
        text += pieces[i];
    return from_base64(text).value_or("damaged");
}

TEST(StoreText, AnyBytesComeBackFromPiecesThatAreShortWords) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    for (std::size_t bytes : {0u, 1u, 2u, 3u, 700u, 760u, 1023u, 1024u, 5000u}) {
        std::string value(bytes, '\0');
        for (char& c : value)
            c = static_cast<char>(random());
        const std::vector<std::string> pieces = split_value(value, 1023);
        for (const std::string& piece : pieces) {
            EXPECT_LE(piece.size(), 1023u);
            EXPECT_EQ(piece.find_first_of(" =;/\n"), std::string::npos);
        }
        EXPECT_EQ(join(pieces), value);
    }
}

TEST(StoreText, ForeignTextIsNoPiece) {
    for (std::string_view text : {"", "unknown", "3", "x.abc", "0.abc"})
        EXPECT_FALSE(take_piece_count(text)) << text;
    EXPECT_FALSE(from_base64("a b"));
}

}  // namespace
}  // namespace gantry::job
