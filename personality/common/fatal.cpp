// SPDX-License-Identifier: BSD-3-Clause
//
// The last words of a personality.
#include "common/fatal.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace gantry::personality {

void fatal(const char* format, ...) {
    char text[1024];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "gantry: %s\n", text);
    std::fflush(stderr);
    _exit(127);
}

}  // namespace gantry::personality
