// SPDX-License-Identifier: BSD-3-Clause
#include "sizes.hpp"

#include <CLI/CLI.hpp>

#include <cctype>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace gantry::bench {
namespace {

Bytes bytes_of(const std::string& text) {
    // std::stoull takes "-8", too, as 2^64 - 8.
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0)
        throw std::invalid_argument(text);
    std::size_t used = 0;
    const auto value = static_cast<Bytes>(std::stoull(text, &used));
    const std::string suffix = text.substr(used);
    const auto times = [value, &text](Bytes unit) {
        if (value > std::numeric_limits<Bytes>::max() / unit) throw std::out_of_range(text);
        return value * unit;
    };
    if (suffix.empty()) return value;
    if (suffix == "K" || suffix == "k") return times(kKiB);
    if (suffix == "M" || suffix == "m") return times(kMiB);
    if (suffix == "G" || suffix == "g") return times(kGiB);
    throw CLI::ValidationError("-m", "'" + text + "' is not a size such as 8, 64K or 4M");
}

}  // namespace

std::vector<Bytes> doubling(Bytes smallest, Bytes largest) {
    std::vector<Bytes> sizes;
    for (Bytes bytes = smallest; bytes <= largest; bytes = bytes == 0 ? 1 : bytes * 2)
        sizes.push_back(bytes);
    return sizes;
}

std::vector<Bytes> sizes_of(const std::string& text) {
    std::vector<Bytes> sizes;
    std::istringstream items(text);
    for (std::string item; std::getline(items, item, ',');) {
        const auto colon = item.find(':');
        Bytes smallest = 0, largest = 0;
        try {
            smallest = bytes_of(item.substr(0, colon));
            largest = colon == std::string::npos ? smallest : bytes_of(item.substr(colon + 1));
        } catch (const std::logic_error&) {
            throw CLI::ValidationError(
                "-m", "'" + item + "' is not a size such as 64K or a range MIN:MAX such as 1:4M");
        }
        if (smallest > largest) throw CLI::ValidationError("-m", "MIN is larger than MAX");
        for (const Bytes bytes : doubling(smallest, largest))
            sizes.push_back(bytes);
    }
    return sizes;
}

Rows rows_of(const std::string& text) {
    const auto colon = text.find(':');
    Rows rows;
    try {
        if (colon == std::string::npos) throw std::invalid_argument(text);
        rows = {bytes_of(text.substr(0, colon)), bytes_of(text.substr(colon + 1))};
    } catch (const std::logic_error&) {
        throw CLI::ValidationError("--layout", "'" + text + "' is no BLOCK:STRIDE such as 512:4K");
    }
    if (!rows.any() || rows.stride < rows.block)
        throw CLI::ValidationError("--layout",
                                   "rows overlap, or have no bytes: STRIDE is from one "
                                   "row's start to the next one's");
    return rows;
}

}  // namespace gantry::bench
