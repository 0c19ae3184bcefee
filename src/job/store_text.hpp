// SPDX-License-Identifier: BSD-3-Clause
//
// Any bytes as values of a launcher's store, whose values are short words without blanks: base64 in
// pieces. The first piece begins with the number of pieces and a dot, so a reader asks for exactly
// what is there (an unknown key is an error to some launchers).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gantry::job {

std::string base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

// Pieces of at most `longest` characters each; `longest` is at least 16.
std::vector<std::string> split_value(std::string_view bytes, std::size_t longest);

// The count at the head of a first piece (which is moved behind it); nothing when it is not such a
// piece.
std::optional<std::size_t> take_piece_count(std::string_view& first_piece);

}  // namespace gantry::job
