// SPDX-License-Identifier: BSD-3-Clause
#include "gpus.hpp"

#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

namespace gantry::mpiexec {
namespace {

std::optional<int> number_in(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
    return value;
}

std::string trimmed(const std::string& text) {
    const std::size_t begin = text.find_first_not_of(' ');
    if (begin == std::string::npos) return {};
    return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Unknown places are near.
bool is_near(const Gpu& gpu, const Processors& processors) {
    return gpu.near.empty() || processors.empty() ||
           std::any_of(processors.begin(), processors.end(), [&gpu](int processor) {
               return std::find(gpu.near.begin(), gpu.near.end(), processor) != gpu.near.end();
           });
}

// Near GPUs go first, to all ranks, so that none takes what is near another one; each to one rank as long as some are
// free. Then those that fewest ranks have.
std::vector<std::vector<Gpu>> closest(std::size_t per_rank, const std::vector<Gpu>& gpus,
                                      const std::vector<Processors>& processors,
                                      std::size_t ranks) {
    std::vector<std::vector<std::size_t>> of_rank(ranks);
    std::vector<std::size_t> uses(gpus.size(), 0);
    const auto near = [&](std::size_t gpu, std::size_t rank) {
        return processors.empty() || is_near(gpus[gpu], processors[rank]);
    };
    const auto has = [&](std::size_t rank, std::size_t gpu) {
        return std::find(of_rank[rank].begin(), of_rank[rank].end(), gpu) != of_rank[rank].end();
    };
    const auto give = [&](std::size_t rank, std::size_t gpu) {
        of_rank[rank].push_back(gpu);
        ++uses[gpu];
    };
    for (std::size_t rank = 0; rank < ranks; ++rank)
        for (std::size_t gpu = 0; gpu < gpus.size() && of_rank[rank].size() < per_rank; ++gpu)
            if (uses[gpu] == 0 && near(gpu, rank)) give(rank, gpu);
    for (std::size_t rank = 0; rank < ranks; ++rank)
        while (of_rank[rank].size() < per_rank) {
            std::optional<std::size_t> best;
            for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
                const auto dear = [&](std::size_t which) {
                    return std::pair(uses[which], !near(which, rank));
                };
                if (!has(rank, gpu) && (!best || dear(gpu) < dear(*best))) best = gpu;
            }
            give(rank, *best);
        }
    std::vector<std::vector<Gpu>> found(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::sort(of_rank[rank].begin(), of_rank[rank].end());
        for (const std::size_t gpu : of_rank[rank])
            found[rank].push_back(gpus[gpu]);
    }
    return found;
}

GpuBinding wrong(std::string mistake) {
    return {{}, std::move(mistake)};
}

}  // namespace

std::optional<GpuWish> gpu_bind(std::string_view text) {
    if (text == "closest") return GpuWish{0, GpuBind::closest, {}};
    if (text == "none") return GpuWish{0, GpuBind::none, {}};
    GpuWish wish{0, GpuBind::listed, {}};
    std::istringstream items{std::string(text)};
    for (std::string item; std::getline(items, item, ',');) {
        const std::optional<int> number = number_in(item);
        if (!number) return std::nullopt;
        wish.listed.push_back(*number);
    }
    if (wish.listed.empty()) return std::nullopt;
    return wish;
}

// The driver, too, takes what stands before the first item that it does not know.
VisibleGpus visible_gpus(const std::vector<Gpu>& all, const char* value) {
    if (value == nullptr) return {all, {}};
    VisibleGpus visible;
    std::istringstream items{std::string(value)};
    for (std::string item; std::getline(items, item, ',');) {
        item = trimmed(item);
        if (item.starts_with("MIG-"))
            return {{},
                    fmt::format("CUDA_VISIBLE_DEVICES={} names parts of a GPU (MIG), which "
                                "mpiexec does not divide; leave --gpus-per-rank and --gpu-bind out",
                                value)};
        const std::optional<int> number = number_in(item);
        const auto found = std::find_if(all.begin(), all.end(), [&](const Gpu& gpu) {
            return number ? &gpu - all.data() == *number
                          : item.starts_with("GPU-") && gpu.uuid.starts_with(item);
        });
        if (found == all.end()) break;
        visible.gpus.push_back(*found);
    }
    return visible;
}

GpuBinding divide_gpus(const GpuWish& wish, const std::vector<Gpu>& gpus,
                       const std::vector<Processors>& processors, int ranks) {
    const GpuBind bind = wish.bind.value_or(GpuBind::closest);
    if (bind == GpuBind::none) return {};
    const int per_rank = std::max(wish.per_rank, 1);
    const std::string there = fmt::format("{} GPU{}", gpus.size(), gpus.size() == 1 ? "" : "s");
    if (gpus.empty()) return wrong("no GPU is seen here; leave --gpus-per-rank and --gpu-bind out");
    if (static_cast<std::size_t>(per_rank) > gpus.size())
        return wrong(fmt::format("--gpus-per-rank {}: this job may use {}", per_rank, there));
    if (bind == GpuBind::closest)
        return {closest(static_cast<std::size_t>(per_rank), gpus, processors,
                        static_cast<std::size_t>(ranks)),
                {}};
    GpuBinding binding;
    for (std::size_t rank = 0, at = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
        binding.ranks.emplace_back();
        for (int i = 0; i < per_rank; ++i, ++at) {
            const auto gpu = static_cast<std::size_t>(wish.listed[at % wish.listed.size()]);
            if (gpu >= gpus.size())
                return wrong(fmt::format(
                    "--gpu-bind: there is no GPU {}; this job may use {}, from 0 on", gpu, there));
            binding.ranks.back().push_back(gpus[gpu]);
        }
    }
    return binding;
}

GpuBinding gpus_for(const Options& options, const Binding& binding) {
    if (!options.gpus.asked() || options.gpus.bind == GpuBind::none) return {};
    const char* const callers = std::getenv("CUDA_VISIBLE_DEVICES");
    const std::vector<Gpu> all = find_gpus();
    const VisibleGpus visible = visible_gpus(all, callers);
    if (!visible.mistake.empty()) return wrong(visible.mistake);
    if (visible.gpus.empty() && !all.empty())
        return wrong(fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" leaves no GPU of this machine's {}",
                                 callers, all.size()));
    return divide_gpus(options.gpus, visible.gpus, binding.ranks, options.total_ranks());
}

std::string report(const GpuBinding& binding) {
    std::string text;
    for (std::size_t rank = 0; rank < binding.ranks.size(); ++rank)
        for (const Gpu& gpu : binding.ranks[rank])
            text += fmt::format("mpiexec: rank {} sees {} at {}\n", rank, gpu.uuid, gpu.bus_id);
    return text;
}

std::string uuids_of(const std::vector<Gpu>& gpus) {
    std::string text;
    for (const Gpu& gpu : gpus)
        text += (text.empty() ? "" : ",") + gpu.uuid;
    return text;
}

}  // namespace gantry::mpiexec
