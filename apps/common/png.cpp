// SPDX-License-Identifier: BSD-3-Clause
#include "png.hpp"

#include "mistake.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace gantry::apps {
namespace {

using Bytes = std::string;

void put32(Bytes& bytes, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(value >> shift & 255));
}

std::uint32_t crc_of(const Bytes& bytes) {
    std::uint32_t crc = ~0u;
    for (const char byte : bytes) {
        crc ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc & 1) != 0 ? 0xedb88320u ^ crc >> 1 : crc >> 1;
    }
    return ~crc;
}

void put_chunk(Bytes& file, const char* name, const Bytes& data) {
    put32(file, static_cast<std::uint32_t>(data.size()));
    const Bytes named = name + data;
    file += named;
    put32(file, crc_of(named));
}

// zlib's format with stored blocks.
Bytes stored(const Bytes& data) {
    constexpr std::size_t kMost = 65535;
    Bytes out = "\x78\x01";
    std::uint32_t a = 1, b = 0;
    for (const char byte : data) {
        a = (a + static_cast<unsigned char>(byte)) % 65521;
        b = (b + a) % 65521;
    }
    for (std::size_t at = 0; at < data.size(); at += kMost) {
        const std::size_t size = std::min(kMost, data.size() - at);
        out.push_back(at + size == data.size() ? '\1' : '\0');
        for (const std::size_t word : {size, ~size}) {
            out.push_back(static_cast<char>(word & 255));
            out.push_back(static_cast<char>(word >> 8 & 255));
        }
        out.append(data, at, size);
    }
    put32(out, b << 16 | a);
    return out;
}

void put_colour(Bytes& row, double value, double low, double high) {
    const double middle = (low + high) / 2, half = std::max((high - low) / 2, 1e-300);
    const double t = std::clamp((value - middle) / half, -1., 1.);
    const double fade = 1 - std::abs(t);
    const double red = t > 0 ? 1 - 0.3 * t : fade, blue = t < 0 ? 1 + 0.3 * t : fade;
    for (const double part : {red, fade, blue})
        row.push_back(static_cast<char>(std::lround(255 * part)));
}

}  // namespace

void write_png(const std::string& path, const Slice& slice, double low, double high, int zoom) {
    Bytes header;
    put32(header, static_cast<std::uint32_t>(slice.width * zoom));
    put32(header, static_cast<std::uint32_t>(slice.height * zoom));
    header += Bytes("\x08\x02\x00\x00\x00", 5);  // 8 bits, red green blue
    Bytes data;
    for (int y = slice.height - 1; y >= 0; --y) {
        Bytes row(1, '\0');  // no filter
        for (int x = 0; x < slice.width; ++x)
            for (int dot = 0; dot < zoom; ++dot)
                put_colour(row, slice.values[static_cast<std::size_t>(y * slice.width + x)], low,
                           high);
        for (int dot = 0; dot < zoom; ++dot)
            data += row;
    }
    Bytes file = "\x89PNG\r\n\x1a\n";
    put_chunk(file, "IHDR", header);
    put_chunk(file, "IDAT", stored(data));
    put_chunk(file, "IEND", "");
    std::FILE* out = std::fopen(path.c_str(), "wb");
    const bool whole =
        out != nullptr && std::fwrite(file.data(), 1, file.size(), out) == file.size();
    if ((out != nullptr && std::fclose(out) != 0) || !whole)
        throw Failure("cannot write the picture " + path + ": " + std::strerror(errno));
}

}  // namespace gantry::apps
