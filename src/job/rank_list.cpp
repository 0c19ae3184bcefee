// SPDX-License-Identifier: BSD-3-Clause
#include "job/rank_list.hpp"

#include <algorithm>
#include <charconv>

namespace gantry::job {
namespace {

// -1: there is no number.
int take_number(std::string_view& text) {
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

}  // namespace

std::vector<int> parse_rank_list(std::string_view text, int size) {
    std::vector<int> ranks;
    while (!text.empty()) {
        std::string_view range = text.substr(0, text.find(','));
        text.remove_prefix(std::min(range.size() + 1, text.size()));
        const int first = take_number(range);
        int last = first;
        if (range.starts_with('-')) {
            range.remove_prefix(1);
            last = take_number(range);
        }
        for (int rank = first; rank >= 0 && rank <= std::min(last, size - 1); ++rank)
            ranks.push_back(rank);
    }
    return ranks;
}

}  // namespace gantry::job
