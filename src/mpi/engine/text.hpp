// SPDX-License-Identifier: BSD-3-Clause
//
// Strings to and from programs: fixed-size buffers with a terminating zero.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

namespace gantry::mpi {

// Writes at most `room` characters with the zero; `length` (may be null) is without it.
inline void copy_text(std::string_view text, char* to, std::size_t room, int* length = nullptr) {
    const std::size_t shown = std::min(text.size(), room - 1);
    std::memcpy(to, text.data(), shown);
    to[shown] = '\0';
    if (length != nullptr) *length = static_cast<int>(shown);
}

// A name as an object keeps it.
inline std::string object_name(const char* name) {
    return std::string(name, strnlen(name, MPI_MAX_OBJECT_NAME - 1));
}

}  // namespace gantry::mpi
