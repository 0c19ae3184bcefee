// SPDX-License-Identifier: BSD-3-Clause
#include "collective_options.hpp"

#include "collective_operation.hpp"
#include "command_line.hpp"
#include "sizes.hpp"

namespace gantry::bench {

CollectiveOptions parse_collective(int argc, char** argv) {
    CollectiveOptions asked;
    std::string placement = "D", form = "blocking", type = "int", op = "sum", baseline = "none";
    asked.operation = argv[1];
    CLI::App app(
        "Time of one call of a collective operation, or of messages of all ranks at once, in "
        "any kind of memory",
        "gantry-bench " + asked.operation);
    app.add_option("placement", placement,
                   "D device, H host, M managed, P page-locked, A OpenACC's (default D)")
        ->check(CLI::IsMember({"D", "H", "M", "P", "A"}));
    std::string sizes = "8,4K,64K,256K,1M,4M";
    app.add_option("-m,--sizes", sizes,
                   "bytes and ranges, such as 8,64K,1M:4M (default 8,4K,64K,256K,1M,4M)");
    app.add_option("--form", form, "blocking, nonblocking or persistent calls (default blocking)")
        ->check(CLI::IsMember({"blocking", "nonblocking", "persistent"}));
    app.add_option("--type", type, "what the numbers are (default int)")
        ->check(CLI::IsMember({"char", "int", "long", "float", "double"}));
    app.add_option("--op", op, "how reductions combine them (default sum)")
        ->check(CLI::IsMember({"sum", "max", "min", "band", "bor", "bxor"}));
    app.add_flag("--overlap", asked.overlap,
                 "how much of a call hides behind computing as long (not of blocking calls)");
    app.add_option(
           "--baseline", baseline,
           "beside the library, of device memory: staged (copy all, the operation on host "
           "memory, copy all), messages (of alltoall: one partner after the other), all (default "
           "none)")
        ->check(CLI::IsMember({"staged", "messages", "all", "none"}));
    app.add_flag("--floor", asked.floor,
                 "beside stores into mapped buffers by hand (device memory of one machine)");
    app.add_flag("--nccl", asked.nccl, "beside NCCL, if its library is found (or NCCL_LIBRARY)");
    app.add_option("--gpus", asked.gpus, "of the ranks, in turn; all there are if not said")
        ->delimiter(',');
    app.add_option("-i,--iterations", asked.samples, "samples of each size (default: by size)")
        ->check(command_line::above_zero());
    app.add_flag_callback(
        "--no-validation", [&asked] { asked.validate = false; }, "do not check what arrived");
    app.add_flag("--json", asked.json, "a line of JSON for each size");
    read_command_line(app, argc - 1, argv + 1, first(), [&] {
        asked.sizes = sizes_of(asked.operation == "barrier" ? "0" : sizes);
        const auto operation = operation_named(asked.operation);
        if (operation && is_of_messages(*operation) && form != "blocking")
            throw CLI::ValidationError("--form",
                                       "fan_in, fan_out and pairs are messages: they have no form");
        asked.element = element_named(type);
        asked.op = combination_named(op);
        asked.numbers = operation && reduces(*operation) ? op + " of " + type : type;
        if (op != "sum" && operation && !reduces(*operation))
            throw CLI::ValidationError("--op", asked.operation + " combines nothing");
        if (is_of_bits(asked.op) && is_floating(asked.element))
            throw CLI::ValidationError("--op", op + " is of whole numbers: take --type int");
        if (asked.overlap && form == "blocking")
            throw CLI::ValidationError("--overlap", "needs --form nonblocking or persistent");
        if ((asked.floor || asked.nccl) && placement != "D")
            throw CLI::ValidationError("--floor and --nccl", "are of device memory (D)");
        asked.staged = baseline == "staged" || baseline == "all";
        asked.messages =
            baseline == "messages" || (baseline == "all" && operation == Operation::alltoall);
        if (baseline == "messages" && operation != Operation::alltoall)
            throw CLI::ValidationError("--baseline",
                                       "messages in turn are of alltoall: take staged");
        if (baseline != "none" && placement != "D")
            throw CLI::ValidationError("--baseline", "is of device memory (D)");
        if (baseline != "none" && (form != "blocking" || operation == Operation::barrier))
            throw CLI::ValidationError("--baseline", "is of blocking calls that move data");
    });
    asked.placement = static_cast<Placement>(placement[0]);
    asked.form = form == "blocking"      ? Form::blocking
                 : form == "nonblocking" ? Form::nonblocking
                                         : Form::persistent;
    return asked;
}

}  // namespace gantry::bench
