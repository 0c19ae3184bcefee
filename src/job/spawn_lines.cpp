// SPDX-License-Identifier: BSD-3-Clause
#include "job/spawn_lines.hpp"

#include <algorithm>
#include <charconv>

namespace gantry::job {

std::string SpawnLines::value(const std::string& key) const {
    const auto found = lines_.find(key);
    return found != lines_.end() ? found->second : std::string();
}

// No count of a block is larger than its number of lines.
int SpawnLines::count(const std::string& key) const {
    return std::min(number(key), static_cast<int>(lines_.size()));
}

int SpawnLines::number(const std::string& key) const {
    const std::string text = value(key);
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return std::max(number, 0);
}

void SpawnLines::end_of_block() {
    SpawnedProgram program;
    program.ranks = number("nprocs");
    program.command.push_back(value("execname"));
    for (int i = 1; i <= count("argcnt"); ++i)
        program.command.push_back(value("arg" + std::to_string(i)));
    for (int i = 0; i < count("info_num"); ++i)
        program.info.emplace_back(value("info_key_" + std::to_string(i)),
                                  value("info_val_" + std::to_string(i)));
    if (request_.programs.empty())
        for (int i = 0; i < count("preput_num"); ++i)
            request_.preput.emplace_back(value("preput_key_" + std::to_string(i)),
                                         value("preput_val_" + std::to_string(i)));
    request_.programs.push_back(std::move(program));
}

std::optional<SpawnRequest> SpawnLines::take(std::string_view line) {
    if (line != "endcmd") {
        const std::size_t equals = line.find('=');
        if (equals != std::string_view::npos)
            lines_[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
        return std::nullopt;
    }
    open_ = false;
    end_of_block();
    const bool last = static_cast<int>(request_.programs.size()) >= number("totspawns");
    lines_.clear();
    if (!last) return std::nullopt;
    return std::exchange(request_, {});
}

}  // namespace gantry::job
