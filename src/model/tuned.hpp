// SPDX-License-Identifier: BSD-3-Clause
//
// Which description belongs to a GPU: the one that `gantry tune` wrote for GPUs of that name
// ($XDG_CONFIG_HOME/gantry/machines/nvidia-h200.json, or under ~/.config), else the built-in one.
#pragma once

#include "model/machine.hpp"

namespace gantry::model {

// "NVIDIA H200" -> "nvidia-h200".
std::string slug(std::string_view gpu_name);
// Where the description of such GPUs lies; empty without a home.
std::string tuned_file(std::string_view gpu_name);
// The built-in description of such GPUs: "NVIDIA H200" describes every GPU whose name holds "H200",
// in whatever case. An error when there is none.
Result<Machine> built_in_for(std::string_view gpu_name);
// The tuned description when there is one, else the built-in one.
Result<Machine> description_of(std::string_view gpu_name);

}  // namespace gantry::model
