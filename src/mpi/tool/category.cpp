// SPDX-License-Identifier: BSD-3-Clause
//
// Categories: one for each layer that has variables, below one for all of Gantry. They never change.
#include "mpi/bodies.hpp"
#include "mpi/tool/tool.hpp"

#include "base/counters.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace gantry::mpi {
namespace tool {
namespace {

struct Category {
    const char* name;
    std::string_view layer;  // empty: all layers
    const char* sentence;
};
constexpr Category kCategories[] = {
    {"gantry", "", "Everything of Gantry, by layer."},
    {"gantry.mpi", "mpi", "How MPI is run: progress, waiting, what is written where."},
    {"gantry.job", "job", "Who started the ranks and where they meet."},
    {"gantry.device", "device", "GPUs: the driver, copies, kernels, mappings between processes."},
    {"gantry.transport", "transport", "Ways to the other ranks: shared memory and networks."},
    {"gantry.plan", "plan", "How the way of a message is chosen, and how that is shown."},
    {"gantry.p2p", "p2p", "Messages: limits, pools and pieces, and what has gone which way."},
};

// By the beginnings of their names; the first that fits counts, and what fits none is of mpi.
struct Beginning {
    std::string_view of_name, layer;
};
constexpr Beginning kLayers[] = {
    {"eager_", "p2p"},
    {"host_", "p2p"},
    {"device_pool", "p2p"},
    {"partition_", "p2p"},
    {"chunk", "p2p"},
    {"depth", "p2p"},
    {"claim_", "p2p"},
    {"explain", "plan"},
    {"machine", "plan"},
    {"ipc_threshold", "plan"},
    {"cma_threshold", "plan"},
    {"device_", "device"},
    {"ipc", "device"},
    {"kernels", "device"},
    {"idle_timeout", "device"},
    {"flags", "device"},
    {"gdrcopy", "device"},
    {"gpu_", "device"},
    {"cuda", "device"},
    {"pmix_", "job"},
    {"launcher", "job"},
    {"rendezvous", "job"},
    {"rank", "job"},
    {"size", "job"},
    {"ring", "transport"},
    {"peer_timeout", "transport"},
    {"shm", "transport"},
    {"gpudirect", "transport"},
    {"ucx", "transport"},
    {"registration_", "transport"},
    {"rails", "transport"},
    {"tcp_", "transport"},
};

std::string_view layer_of(std::string_view parameter) {
    for (const Beginning& each : kLayers)
        if (parameter.starts_with(each.of_name)) return each.layer;
    return "mpi";
}

// The indices of the variables in a category; none in that of everything.
std::vector<int> controls(const Category& category) {
    std::vector<int> indices;
    const auto all = config::parameters();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (layer_of(all[i].name) == category.layer) indices.push_back(static_cast<int>(i));
    return indices;
}

std::vector<int> counters(const Category& category) {
    std::vector<int> indices;
    const auto rows = counter_rows();
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].layer == category.layer) indices.push_back(static_cast<int>(i));
    return indices;
}

std::vector<int> parts(const Category& category) {
    std::vector<int> indices;
    if (!category.layer.empty()) return indices;
    for (std::size_t i = 1; i < std::size(kCategories); ++i)
        indices.push_back(static_cast<int>(i));
    return indices;
}

const Category* find(int index) {
    if (index < 0 || static_cast<std::size_t>(index) >= std::size(kCategories)) return nullptr;
    return &kCategories[index];
}

Status no_such_category(int index) {
    return no_such_index("cat_index", index, std::size(kCategories));
}

Status give_list(int cat_index, std::vector<int> (*list)(const Category&), int len, int* indices) {
    const Category* category = find(cat_index);
    if (category == nullptr) return no_such_category(cat_index);
    const std::vector<int> all = list(*category);
    std::copy_n(all.begin(), std::clamp<std::ptrdiff_t>(len, 0, std::ssize(all)), indices);
    return success();
}

}  // namespace
}  // namespace tool

Status t_category_get_num(int* num_cat) {
    *num_cat = static_cast<int>(std::size(tool::kCategories));
    return success();
}

Status t_category_get_info(int cat_index, char* name, int* name_len, char* desc, int* desc_len,
                           int* num_cvars, int* num_pvars, int* num_categories) {
    const tool::Category* category = tool::find(cat_index);
    if (category == nullptr) return tool::no_such_category(cat_index);
    tool::give_text(category->name, name, name_len);
    tool::give_text(category->sentence, desc, desc_len);
    tool::give(num_cvars, static_cast<int>(tool::controls(*category).size()));
    tool::give(num_pvars, static_cast<int>(tool::counters(*category).size()));
    tool::give(num_categories, static_cast<int>(tool::parts(*category).size()));
    return success();
}

Status t_category_get_index(const char* name, int* cat_index) {
    const auto found = std::ranges::find_if(
        tool::kCategories,
        [name](const tool::Category& category) { return std::string_view(category.name) == name; });
    if (found == std::end(tool::kCategories)) return tool::no_such_name("category", name);
    *cat_index = static_cast<int>(found - std::begin(tool::kCategories));
    return success();
}

Status t_category_get_cvars(int cat_index, int len, int* indices) {
    return tool::give_list(cat_index, tool::controls, len, indices);
}

Status t_category_get_pvars(int cat_index, int len, int* indices) {
    return tool::give_list(cat_index, tool::counters, len, indices);
}

Status t_category_get_categories(int cat_index, int len, int* indices) {
    return tool::give_list(cat_index, tool::parts, len, indices);
}

Status t_category_get_num_events(int cat_index, int* num_events) {
    if (tool::find(cat_index) == nullptr) return tool::no_such_category(cat_index);
    *num_events = 0;
    return success();
}

Status t_category_get_events(int cat_index, int, int*) {
    return tool::find(cat_index) == nullptr ? tool::no_such_category(cat_index) : success();
}

Status t_category_changed(int* update_number) {
    *update_number = 1;  // variables and categories are there from the beginning
    return success();
}

}  // namespace gantry::mpi
