// SPDX-License-Identifier: BSD-3-Clause
#include "job/node_map.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <map>

namespace gantry::job {
namespace {

struct Block {
    int first_node = 0;
    int nodes = 0;
    int ranks_per_node = 0;
};

// Reads one number and the delimiter behind it.
bool take_number(std::string_view& text, char delimiter, int& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end == text.data() + text.size() || *end != delimiter) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
    return true;
}

std::vector<int> dense(const std::vector<int>& raw) {
    std::map<int, int> number_of;
    std::vector<int> nodes;
    nodes.reserve(raw.size());
    for (int node : raw)
        nodes.push_back(
            number_of.try_emplace(node, static_cast<int>(number_of.size())).first->second);
    return nodes;
}

}  // namespace

std::optional<std::vector<int>> parse_process_mapping(std::string_view text, int size) {
    constexpr std::string_view kOpening = "(vector,";
    if (!text.starts_with(kOpening)) return std::nullopt;
    text.remove_prefix(kOpening.size());
    std::vector<Block> blocks;
    while (text.starts_with('(')) {
        text.remove_prefix(1);
        Block block;
        if (!take_number(text, ',', block.first_node) || !take_number(text, ',', block.nodes) ||
            !take_number(text, ')', block.ranks_per_node))
            return std::nullopt;
        if (block.first_node < 0 || block.nodes < 1 || block.ranks_per_node < 1)
            return std::nullopt;
        blocks.push_back(block);
        if (text.starts_with(',')) text.remove_prefix(1);
    }
    if (blocks.empty() || text != ")") return std::nullopt;

    const auto wanted = static_cast<std::size_t>(size);
    std::vector<int> raw;
    while (raw.size() < wanted)
        for (const Block& block : blocks)
            for (int node = block.first_node; node < block.first_node + block.nodes; ++node)
                for (int i = 0; i < block.ranks_per_node && raw.size() < wanted; ++i)
                    raw.push_back(node);
    return dense(raw);
}

std::vector<int> number_nodes(const std::vector<std::string>& host_of_rank) {
    std::map<std::string_view, int> number_of;
    std::vector<int> nodes;
    nodes.reserve(host_of_rank.size());
    for (const std::string& host : host_of_rank)
        nodes.push_back(
            number_of.try_emplace(host, static_cast<int>(number_of.size())).first->second);
    return nodes;
}

std::string host_mark() {
    std::string mark;
    char buffer[128];
    if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re"); file != nullptr) {
        const std::size_t length = std::fread(buffer, 1, sizeof buffer, file);
        std::fclose(file);
        mark.assign(buffer, length);
        if (!mark.empty() && mark.back() == '\n') mark.pop_back();
    } else if (gethostname(buffer, sizeof buffer) == 0) {
        buffer[sizeof buffer - 1] = '\0';
        mark = buffer;
    }
    const ssize_t length = readlink("/proc/self/ns/pid", buffer, sizeof buffer);
    if (length > 0) mark.append("/").append(buffer, static_cast<std::size_t>(length));
    return mark;
}

}  // namespace gantry::job
