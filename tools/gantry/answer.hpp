// SPDX-License-Identifier: BSD-3-Clause
//
// What a command says on standard output. Whether it could all be written is asked once, at the end:
// an answer that a full disk has cut short is none. (fmt::print aborts where a write fails.)
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace gantry::tool {

template <class... Values>
void answer(fmt::format_string<Values...> format, Values&&... values) {
    const std::string text = fmt::format(format, std::forward<Values>(values)...);
    std::fwrite(text.data(), 1, text.size(), stdout);
}

// The exit status of a command that ended with `code`.
inline int with_all_written(int code) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    fmt::print(stderr, "gantry: writing to standard output failed: {}\n", std::strerror(errno));
    return code != 0 ? code : 1;
}

}  // namespace gantry::tool
