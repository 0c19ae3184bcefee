// SPDX-License-Identifier: BSD-3-Clause
// What the user asked the simulator to be: one environment variable,
//   SIMGPU=machine=h200,dev=2,mem=4G,scale=1,help=1,mps=1,run=NAME,hidden=refused,suballoc=1,poison=1,leaks=1,trace=FILE,counts=FILE
// with every part optional. `scale` multiplies all modelled durations; 0 is the functional mode, in
// which operations take no time (the default unless a machine is named). Kept free of any state.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace simgpu {

enum class Help { off, inline_on_caller };
// Memory on GPUs that a process does not see: mapped, as where only CUDA_VISIBLE_DEVICES hides them, or
// refused, as where their device files are kept from it (a container, Slurm's cgroups).
enum class Hidden { mapped, refused };

using Uuid = std::array<unsigned char, 16>;
Uuid uuid_of(int physical_device);

struct Settings {
    std::string machine = "h200";  // name of a described machine, or a path to a JSON file
    int devices = 1;
    std::size_t device_bytes = std::size_t{8} << 30;
    double scale = 0.0;
    Help help = Help::inline_on_caller;  // may query and synchronise calls run due operations?
    bool mps = false;                    // processes share a device's compute queue: no turns
    Hidden hidden = Hidden::mapped;
    std::string run;                // separates concurrent runs; stands for "another node"
    std::size_t suballocation = 0;  // user addresses start this many times 512 B into a block
    bool poison = true;
    bool report_leaks = false;
    std::string trace_file;    // one line per operation, written at exit
    std::string counts_file;   // one line per entry point called, written at exit
    std::vector<int> visible;  // CUDA_VISIBLE_DEVICES: physical ordinals in order
    std::string complaint;     // what could not be understood; reported once on stderr
};

Settings parse_settings(const char* text, const char* visible_devices);

}  // namespace simgpu
