// SPDX-License-Identifier: BSD-3-Clause
#include "io_options.hpp"

#include "command_line.hpp"
#include "sizes.hpp"

namespace gantry::bench {

IoOptions parse_io(int argc, char** argv) {
    IoOptions asked;
    std::string pattern = "contiguous", placement = "D", sizes = "64K,1M,16M";
    std::string call = "1M", block = "4K";
    CLI::App app("Files that all ranks write and read: MB/s, in any kind of memory",
                 "gantry-bench io");
    app.add_option(
           "pattern", pattern,
           "contiguous: a part each; strided: blocks in turn; subarray: a 3D array cut in "
           "all dimensions; bt: cells of a grid as NAS BT-IO writes them (default contiguous)")
        ->check(CLI::IsMember({"contiguous", "strided", "subarray", "bt"}));
    app.add_option("placement", placement, "D device, H host, M managed, P page-locked (default D)")
        ->check(CLI::IsMember({"D", "H", "M", "P"}));
    app.add_option("-m,--sizes", sizes,
                   "bytes a rank, and ranges, such as 8K,1M:16M (default 64K,1M,16M)");
    app.add_option("-t,--call", call, "bytes of one call of contiguous (default 1M)");
    app.add_option("--block", block, "bytes of a block of strided (default 4K)");
    app.add_flag("--collective", asked.together, "calls of all ranks together");
    app.add_option("--folder", asked.folder, "where the file is (default /dev/shm, tmpfs)")
        ->check(CLI::ExistingDirectory);
    app.add_flag("--floor", asked.floor,
                 "beside the system's own pwrite and pread of as many bytes (host memory)");
    app.add_option("--gpus", asked.gpus, "of the ranks, in turn; all there are if not said")
        ->delimiter(',');
    app.add_option("-i,--iterations", asked.samples, "samples of each size (default: by size)")
        ->check(command_line::above_zero());
    app.add_flag_callback(
        "--no-validation", [&asked] { asked.validate = false; },
        "do not check what the file and memory hold");
    app.add_flag("--json", asked.json, "a line of JSON for each figure");
    read_command_line(app, argc, argv, first(), [&] {
        asked.sizes = sizes_of(sizes);
        const auto one = [](const std::string& text, const char* option) {
            const std::vector<Bytes> all = sizes_of(text);
            if (all.size() != 1 || all[0] == 0)
                throw CLI::ValidationError(option, "'" + text + "' is not a size such as 64K");
            return all[0];
        };
        asked.call = one(call, "-t");
        asked.block = one(block, "--block");
        if (asked.floor && placement != "H" && placement != "P")
            throw CLI::ValidationError("--floor", "the system takes host memory: H or P");
    });
    for (const FilePattern each : kFilePatterns)
        if (pattern == name(each)) asked.pattern = each;
    asked.placement = static_cast<Placement>(placement[0]);
    return asked;
}

}  // namespace gantry::bench
