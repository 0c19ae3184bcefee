// SPDX-License-Identifier: BSD-3-Clause
//
// One log sink for the process (a global that tools/check/globals.txt lists). Lines are lower case and begin with
// the part that speaks:
//   p2p: pipeline 4 MiB to rank 3, chunk 256 KiB, depth 4
// The level comes from GANTRY_LOG (off, error, warn, info, debug; default warn). Formatting work
// happens only when the level is on.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string_view>

namespace gantry::log {

enum class Level : int { off = 0, error, warn, info, debug };

Level level();
void set_level(Level level);
// Of a word of GANTRY_LOG.
std::optional<Level> level_named(std::string_view word);
// Prefix of every line, such as "rank 3"; set once the job is known.
void set_identity(std::string_view identity);
void write(Level level, std::string_view line);

template <class... Args>
[[gnu::cold, gnu::noinline]] void line(Level at, fmt::format_string<Args...> text, Args&&... args) {
    if (at <= level()) write(at, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void error(fmt::format_string<Args...> text, Args&&... args) {
    line(Level::error, text, std::forward<Args>(args)...);
}
template <class... Args>
void warn(fmt::format_string<Args...> text, Args&&... args) {
    line(Level::warn, text, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> text, Args&&... args) {
    line(Level::info, text, std::forward<Args>(args)...);
}
template <class... Args>
void debug(fmt::format_string<Args...> text, Args&&... args) {
    line(Level::debug, text, std::forward<Args>(args)...);
}

}  // namespace gantry::log
