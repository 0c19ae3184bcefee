// SPDX-License-Identifier: BSD-3-Clause
//
//   wrapper:  magic, version, address of the fat binary
//   fat binary:  magic u32, version u16, header bytes u16, bytes behind the header u64; then entries
//   entry:  kind u16 (1: PTX), version u16, header bytes u32, payload bytes u64, compressed bytes u32 ...
#include "image.hpp"

#include <cstdint>
#include <cstring>

namespace simgpu::cudart {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1, kFatMagic = 0xba55ed50;
constexpr std::uint16_t kPtx = 1;

struct Wrapper {
    std::uint32_t magic, version;
    const char* fat;
};
struct FatHeader {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
};
struct EntryHeader {
    std::uint16_t kind, version;
    std::uint32_t header_bytes;
    std::uint64_t bytes;
    std::uint32_t compressed_bytes;
};

template <class Header>
Header header_at(const char* place) {
    Header header{};
    std::memcpy(&header, place, sizeof header);
    return header;
}

}  // namespace

std::string ptx_of(const void* wrapper_or_text) {
    const auto* text = static_cast<const char*>(wrapper_or_text);
    if (text == nullptr) {
        return {};
    }
    if (header_at<std::uint32_t>(text) != kWrapperMagic) {
        return text;
    }
    const char* place = header_at<Wrapper>(text).fat;
    const auto fat = header_at<FatHeader>(place);
    if (fat.magic != kFatMagic) {
        return {};
    }
    place += fat.header_bytes;
    for (const char* end = place + fat.bytes; place < end;) {
        const auto entry = header_at<EntryHeader>(place);
        if (entry.header_bytes == 0) {
            return {};
        }
        if (entry.kind == kPtx && entry.compressed_bytes == 0) {
            return {place + entry.header_bytes, entry.bytes};
        }
        place += entry.header_bytes + entry.bytes;
    }
    return {};
}

}  // namespace simgpu::cudart
