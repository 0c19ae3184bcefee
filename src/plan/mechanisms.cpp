// SPDX-License-Identifier: BSD-3-Clause
#include "plan/plan.hpp"

#include <algorithm>

namespace gantry::plan {
namespace {

struct Named {
    std::string_view name;
    bool Mechanisms::*field;
};
constexpr Named kAll[] = {
    {"selection_cache", &Mechanisms::selection_cache},
    {"rts_templates", &Mechanisms::rts_templates},
    {"one_copy", &Mechanisms::one_copy},
    {"notify_flags", &Mechanisms::notify_flags},
    {"cut_through", &Mechanisms::cut_through},
    {"ready_to_receive", &Mechanisms::ready_to_receive},
    {"anchors", &Mechanisms::anchors},
    {"batches", &Mechanisms::batches},
    {"node_segment", &Mechanisms::node_segment},
    {"claims", &Mechanisms::claims},
    {"cma", &Mechanisms::cma},
};

std::string all_names() {
    std::string text;
    for (const Named& each : kAll) {
        if (!text.empty()) text += ", ";
        text += each.name;
    }
    return text;
}

}  // namespace

Result<Mechanisms> mechanisms_from(std::string_view list) {
    Mechanisms mechanisms;
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        std::string_view word = list.substr(0, end);
        list.remove_prefix(std::min(end + 1, list.size()));
        if (word == "all" || word == "none") {
            for (const Named& each : kAll)
                mechanisms.*each.field = word == "all";
            continue;
        }
        const bool on = !word.starts_with('-');
        if (!on) word.remove_prefix(1);
        const auto found = std::ranges::find(kAll, word, &Named::name);
        if (found == std::end(kAll))
            return failure(
                MPI_ERR_ARG,
                "GANTRY_MECHANISMS: {} is no mechanism; write all or none, then names of "
                "{} with commas between them, a minus before what is to be off",
                word, all_names());
        mechanisms.*found->field = on;
    }
    return mechanisms;
}

}  // namespace gantry::plan
