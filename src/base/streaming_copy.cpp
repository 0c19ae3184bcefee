// SPDX-License-Identifier: BSD-3-Clause
#include "base/streaming_copy.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace gantry {

#if defined(__SSE2__)
void streaming_copy(std::byte* to, const std::byte* from, Bytes bytes) {
    constexpr Bytes kLine = 64;
    const Bytes misaligned = reinterpret_cast<std::uintptr_t>(to) % kLine;
    const Bytes head = std::min(bytes, misaligned == 0 ? 0 : kLine - misaligned);
    std::memcpy(to, from, head);
    to += head;
    from += head;
    bytes -= head;
    for (; bytes >= kLine; bytes -= kLine, to += kLine, from += kLine) {
        const auto* source = reinterpret_cast<const __m128i*>(from);
        auto* line = reinterpret_cast<__m128i*>(to);
        const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1),
                      c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(line, a);
        _mm_stream_si128(line + 1, b);
        _mm_stream_si128(line + 2, c);
        _mm_stream_si128(line + 3, d);
    }
    std::memcpy(to, from, bytes);
    // Streaming stores are not ordered with later plain ones (the message that tells of them).
    _mm_sfence();
}
#else
void streaming_copy(std::byte* to, const std::byte* from, Bytes bytes) {
    std::memcpy(to, from, bytes);
}
#endif

}  // namespace gantry
