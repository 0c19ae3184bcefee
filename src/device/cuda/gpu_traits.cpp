// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/gpu_traits.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>

namespace gantry::device::cuda {
namespace {

double leading_number(std::string_view text) {
    double number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::string first_line(const std::string& file_name) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(file_name.c_str(), "re"),
                                                               &std::fclose);
    char line[64] = {};
    if (file == nullptr || std::fgets(line, sizeof line, file.get()) == nullptr) return {};
    return line;
}

}  // namespace

double link_bytes_per_second(std::string_view speed, std::string_view width) {
    // Up to 5 GT/s ten bits carry a byte, from 8 GT/s on 130 carry 16.
    constexpr double kFirstOfDenseCode = 8;
    const double transfers = leading_number(speed), lanes = leading_number(width);
    const double bytes = transfers < kFirstOfDenseCode ? 0.1 : 16.0 / 130;
    return transfers * 1e9 * bytes * lanes;
}

double link_of_pci_device(std::string_view bus_id) {
    std::string folder = "/sys/bus/pci/devices/";
    for (const char letter : bus_id)
        folder += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    return link_bytes_per_second(first_line(folder + "/max_link_speed"),
                                 first_line(folder + "/max_link_width"));
}

}  // namespace gantry::device::cuda
