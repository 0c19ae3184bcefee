// SPDX-License-Identifier: BSD-3-Clause
#include "collective_options.hpp"

#include "collective_operation.hpp"
#include "job.hpp"

#include <CLI/CLI.hpp>

namespace gantry::bench {

CollectiveOptions parse_collective(int argc, char** argv) {
    CollectiveOptions asked;
    std::string placement = "D", form = "blocking";
    CLI::App app("Collective operations: time of one call, in any kind of memory");
    app.add_option("operation", asked.operation)->required();
    app.add_option("placement", placement,
                   "D device, H host, M managed, P page-locked, A OpenACC's")
        ->check(CLI::IsMember({"D", "H", "M", "P"}));
    std::string sizes = "8,4K,64K,256K,1M,4M";
    app.add_option("-m,--sizes", sizes, "bytes and ranges, such as 8,64K,1M:4M");
    app.add_option("--form", form, "blocking, nonblocking or persistent calls")
        ->check(CLI::IsMember({"blocking", "nonblocking", "persistent"}));
    app.add_flag("--overlap", asked.overlap,
                 "how much of a call hides behind computing as long (not of blocking calls)");
    app.add_flag("--floor", asked.floor,
                 "beside stores into mapped buffers by hand (device memory of one machine)");
    app.add_flag("--nccl", asked.nccl, "beside NCCL, if its library is found (or NCCL_LIBRARY)");
    app.add_option("--gpus", asked.gpus, "of the ranks, in turn; all there are if not said")
        ->delimiter(',');
    app.add_option("-i,--iterations", asked.samples, "samples of each size");
    app.add_flag("!--no-validation", asked.validate, "do not check what arrived");
    app.add_flag("--json", asked.json, "a line of JSON for each size");
    try {
        app.parse(argc, argv);
        asked.sizes = sizes_of(asked.operation == "barrier" ? "0" : sizes);
        const auto operation = operation_named(asked.operation);
        if (operation && is_of_messages(*operation) && form != "blocking")
            throw CLI::ValidationError("--form",
                                       "fan_in, fan_out and pairs are messages: they have no form");
        if (asked.overlap && form == "blocking")
            throw CLI::ValidationError("--overlap", "needs --form nonblocking or persistent");
        if ((asked.floor || asked.nccl) && placement != "D")
            throw CLI::ValidationError("--floor and --nccl", "are of device memory (D)");
    } catch (const CLI::ParseError& wrong) {
        const int code = first() ? app.exit(wrong) : 1;
        finish(code);
    }
    asked.placement = static_cast<Placement>(placement[0]);
    asked.form = form == "blocking"      ? Form::blocking
                 : form == "nonblocking" ? Form::nonblocking
                                         : Form::persistent;
    return asked;
}

}  // namespace gantry::bench
