// SPDX-License-Identifier: BSD-3-Clause
//
// Which description belongs to a GPU: the one that is asked for (GANTRY_MACHINE), else the one that
// `gantry tune` wrote for GPUs of that name ($XDG_CONFIG_HOME/gantry/machines/nvidia-h200.json, or
// under ~/.config), else the built-in one, else an estimate.
#pragma once

#include "model/estimate.hpp"
#include "model/machine.hpp"

#include <cstdint>

namespace gantry::model {

// "NVIDIA H200" -> "nvidia-h200".
std::string slug(std::string_view gpu_name);
// Where the description of such GPUs lies; empty without a home.
std::string tuned_file(std::string_view gpu_name);
// The built-in description of such GPUs: "NVIDIA H200" describes every GPU whose name holds "H200",
// in whatever case. An error when there is none.
Result<Machine> built_in_for(std::string_view gpu_name);

enum class Origin : std::uint8_t { asked_for, measured, built_in, estimated };

struct Description {
    Machine machine;
    Origin origin = Origin::estimated;
    std::string place;  // the file, or the name of the built-in one
    Status problem;     // a better one was there, but could not be read
};
// `asked_for`: a file or a built-in name, which goes before what the driver says, too; empty: nothing
// was.
Description describe(std::string_view asked_for, const Traits& traits);
// What describes the GPU, for people: "measured by gantry tune (FILE)".
std::string origin_text(const Description& description);

}  // namespace gantry::model
