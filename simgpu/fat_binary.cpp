// SPDX-License-Identifier: BSD-3-Clause
//
//   header   magic u32, version u16, its own bytes u16, bytes of all entries u64
//   entry    kind u16 (2: ELF), version u16, bytes of this head u32, bytes behind it u64,
//            at 16: packed bytes u32; at 28: architecture u32; at 40: flags u64 (0x2000: LZ4); at 56: unpacked bytes u64
//
// LZ4: runs of { token u8: literals << 4 | match - 4; either, if 15, goes on in bytes of up to 255;
// literals; distance u16 }, the last without a match.
#include "fat_binary.hpp"

#include <string.h>

#include <cstdint>
#include <optional>

namespace simgpu {
namespace {

constexpr std::uint32_t kMagic = 0xba55ed50;
constexpr std::uint16_t kElf = 2;
constexpr std::uint64_t kLz4 = 0x2000, kPackedInAnotherWay = 0x8000;
constexpr std::size_t kShortestMatch = 4;

template <class T>
T at(const char* bytes, std::size_t offset) {
    T value;
    memcpy(&value, bytes + offset, sizeof value);
    return value;
}

class Packed {
  public:
    Packed(const char* bytes, std::size_t count) : at_(bytes), end_(bytes + count) {}
    bool empty() const { return at_ == end_; }
    // Null: there are no such many.
    const char* take(std::size_t count) {
        if (static_cast<std::size_t>(end_ - at_) < count) {
            return nullptr;
        }
        const char* taken = at_;
        at_ += count;
        return taken;
    }
    std::optional<std::size_t> length(std::size_t begun) {
        if (begun < 15) {
            return begun;
        }
        for (unsigned char next = 255; next == 255;) {
            const char* byte = take(1);
            if (byte == nullptr) {
                return std::nullopt;
            }
            next = static_cast<unsigned char>(*byte);
            begun += next;
        }
        return begun;
    }

  private:
    const char* at_;
    const char* end_;
};

std::vector<char> unpacked(Packed packed, std::size_t bytes) {
    std::vector<char> out;
    out.reserve(bytes);
    while (!packed.empty()) {
        const auto token = static_cast<unsigned char>(*packed.take(1));
        const std::optional<std::size_t> literals = packed.length(token >> 4);
        const char* from = literals ? packed.take(*literals) : nullptr;
        if (from == nullptr) {
            return {};
        }
        out.insert(out.end(), from, from + *literals);
        if (packed.empty()) {
            break;
        }
        const char* back = packed.take(2);
        const std::optional<std::size_t> match =
            back != nullptr ? packed.length(token & 15) : std::nullopt;
        const std::size_t distance = back != nullptr ? at<std::uint16_t>(back, 0) : 0;
        if (!match || distance == 0 || distance > out.size()) {
            return {};
        }
        for (std::size_t i = 0; i < *match + kShortestMatch; ++i) {
            out.push_back(out[out.size() - distance]);  // may reach into what it writes
        }
    }
    return out.size() == bytes ? out : std::vector<char>();
}

}  // namespace

bool looks_like_fat_binary(const void* image) {
    return at<std::uint32_t>(static_cast<const char*>(image), 0) == kMagic;
}

std::vector<char> first_cubin_of(const void* fat_binary) {
    const auto* bytes = static_cast<const char*>(fat_binary);
    std::size_t place = at<std::uint16_t>(bytes, 6);
    const std::size_t end = place + at<std::uint64_t>(bytes, 8);
    while (place < end) {
        const char* entry = bytes + place;
        const auto head = at<std::uint32_t>(entry, 4);
        const auto behind = at<std::uint64_t>(entry, 8);
        const auto flags = at<std::uint64_t>(entry, 40);
        if (at<std::uint16_t>(entry, 0) == kElf && (flags & kPackedInAnotherWay) == 0) {
            const char* content = entry + head;
            return (flags & kLz4) != 0 ? unpacked({content, at<std::uint32_t>(entry, 16)},
                                                  at<std::uint64_t>(entry, 56))
                                       : std::vector<char>(content, content + behind);
        }
        place += head + behind;
    }
    return {};
}

}  // namespace simgpu
