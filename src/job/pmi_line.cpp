// SPDX-License-Identifier: BSD-3-Clause
#include "job/pmi_line.hpp"

#include <charconv>

namespace gantry::job {

PmiLine::PmiLine(std::string_view line) {
    std::string* latest = nullptr;
    while (!line.empty()) {
        const std::size_t blank = line.find(' ');
        const std::string_view word = line.substr(0, blank);
        line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
        const std::size_t equals = word.find('=');
        if (equals != std::string_view::npos)
            latest = &(fields_[std::string(word.substr(0, equals))] =
                           std::string(word.substr(equals + 1)));
        else if (latest != nullptr && !word.empty())
            latest->append(" ").append(word);
    }
}

std::string_view PmiLine::text(std::string_view key) const {
    const auto found = fields_.find(key);
    return found != fields_.end() ? std::string_view(found->second) : std::string_view{};
}

std::optional<int> PmiLine::number(std::string_view key) const {
    const std::string_view digits = text(key);
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

}  // namespace gantry::job
