// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

namespace gantry::log {
namespace {

// Leaked on purpose: atexit handlers of other libraries may still make us log.
struct Sink {
    std::atomic<Level> level{Level::warn};
    std::string identity;
};
Sink& sink() {
    static Sink* const the_sink = new Sink;
    return *the_sink;
}

}  // namespace

Level level() {
    return sink().level.load(std::memory_order_relaxed);
}
void set_level(Level level) {
    sink().level.store(level, std::memory_order_relaxed);
}
std::optional<Level> level_named(std::string_view word) {
    constexpr std::string_view kWords[] = {"off", "error", "warn", "info", "debug"};
    const auto* found = std::ranges::find(kWords, word);
    if (found == std::end(kWords)) return std::nullopt;
    return static_cast<Level>(found - std::begin(kWords));
}
void set_identity(std::string_view identity) {
    sink().identity = identity;
}

void write(Level level, std::string_view line) {
    constexpr std::string_view kNames[] = {"", "error: ", "warning: ", "", ""};
    std::string text = fmt::format("gantry{}{}: {}{}\n", sink().identity.empty() ? "" : " ",
                                   sink().identity, kNames[static_cast<int>(level)], line);
    // One write per line, so that lines of several ranks do not mix. A log that cannot be written
    // is dropped.
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace gantry::log
