// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda/expected_gpu.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace gantry::device::cuda {
namespace {

namespace fs = std::filesystem;

// "GPU UUID: \t GPU-2d6a..."
std::string uuid_in(const fs::path& information) {
    std::ifstream file(information);
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("GPU UUID:")) return line.substr(line.find_last_of(" \t") + 1);
    return {};
}

fs::path folder_of_gpus(const std::string& proc) {
    return fs::path(proc) / "driver/nvidia/gpus";
}

// As the driver reads it: a list that ends at the first entry that is no GPU.
std::vector<std::string> choose(const std::vector<std::string>& gpus, std::string_view list,
                                Numbers numbers, const std::string& proc) {
    std::vector<std::string> chosen;
    while (!list.empty()) {
        const std::string_view entry = list.substr(0, list.find(','));
        list.remove_prefix(std::min(entry.size() + 1, list.size()));
        std::size_t number = 0;
        const auto [end, error] =
            std::from_chars(entry.data(), entry.data() + entry.size(), number);
        auto found = gpus.end();
        if (error == std::errc{} && end == entry.data() + entry.size()) {
            if (numbers == Numbers::of_the_machine && number < gpus.size())
                found = gpus.begin() + static_cast<std::ptrdiff_t>(number);
        } else if (entry.starts_with("GPU-")) {
            found = std::ranges::find_if(gpus, [&](const std::string& gpu) {
                return uuid_in(folder_of_gpus(proc) / gpu / "information").starts_with(entry);
            });
        }
        if (found == gpus.end()) break;
        chosen.push_back(*found);
    }
    return chosen;
}

}  // namespace

std::vector<std::string> gpus_of_machine(const std::string& proc) {
    std::vector<std::string> gpus;
    std::error_code refused;
    for (fs::directory_iterator gpu(folder_of_gpus(proc), refused), end; !refused && gpu != end;
         gpu.increment(refused))
        gpus.push_back(gpu->path().filename().string());
    std::ranges::sort(gpus);
    return gpus;
}

std::string expected_gpu(const std::string& proc, const std::optional<std::string>& visible,
                         Numbers numbers, int local_rank) {
    std::vector<std::string> gpus = gpus_of_machine(proc);
    if (visible) gpus = choose(gpus, *visible, numbers, proc);
    if (gpus.empty()) return {};
    return gpus[static_cast<std::size_t>(std::max(local_rank, 0)) % gpus.size()];
}

}  // namespace gantry::device::cuda
