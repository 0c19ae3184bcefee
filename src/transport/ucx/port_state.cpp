// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ucx/port_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace gantry::transport::ucx {
namespace {

constexpr int kActive = 4;  // IBV_PORT_ACTIVE; the file says "4: ACTIVE"

}  // namespace

bool port_is_active(std::string resource, const std::string& sys) {
    resource = resource.substr(resource.rfind('/') + 1);
    const std::size_t colon = resource.find(':');
    if (colon == resource.npos) return true;
    std::ifstream file(fmt::format("{}/class/infiniband/{}/ports/{}/state", sys,
                                   resource.substr(0, colon), resource.substr(colon + 1)));
    int state = kActive;
    return !(file >> state) || state == kActive;
}

bool ports_are_active(const Rail& rail, const std::string& sys) {
    return std::ranges::all_of(
        rail.devices(), [&](const std::string& device) { return port_is_active(device, sys); });
}

}  // namespace gantry::transport::ucx
