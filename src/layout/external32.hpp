// SPDX-License-Identifier: BSD-3-Clause
//
// The data representation "external32" (MPI 5.0 section 14.5.2), item by item: big-endian, without
// padding, with sizes of its own.
//
//     form        in memory                 external
//     reversed    n bytes, little-endian    n bytes, big-endian
//     integer     8 bytes                   the low 4 (MPI_LONG)
//     natural     8 or 4 bytes, unsigned    the low 4 (MPI_UNSIGNED_LONG) or 2 (MPI_WCHAR)
//     extended    long double               16 bytes, IEEE binary128
#pragma once

#include "base/units.hpp"

#include <cstddef>
#include <cstdint>

namespace gantry::layout {

enum class ExternalForm : std::uint8_t { reversed, integer, natural, extended };

// `count` equal items that lie one behind the other.
struct ExternalItem {
    ExternalForm form = ExternalForm::reversed;
    Bytes native = 0, external = 0;  // of one
    Bytes count = 1;
};

// False: a value does not fit the external size; what follows it is not written.
bool to_external32(const ExternalItem& item, const std::byte* native, std::byte* external);
void from_external32(const ExternalItem& item, const std::byte* external, std::byte* native);

}  // namespace gantry::layout
