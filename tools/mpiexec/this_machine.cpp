// SPDX-License-Identifier: BSD-3-Clause
#include "this_machine.hpp"

#include "handover.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

namespace gantry::mpiexec {
namespace {

bool is_this_machine(const std::string& host) {
    if (host == "localhost" || host == "localhost.localdomain" || host.starts_with("127."))
        return true;
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) != 0) return false;
    const std::string name = own;
    return host == name || host == name.substr(0, name.find('.'));
}

}  // namespace

void take_this_machine(Options& options) {
    if (!options.launcher.empty() || options.show_command) return;
    if (options.hosts.empty() == options.host_file.empty()) return;  // none, or both
    const Hosts read =
        options.hosts.empty() ? read_hostfile(options.host_file) : parse_hosts(options.hosts);
    if (!read.mistake.empty() ||
        !std::all_of(read.hosts.begin(), read.hosts.end(),
                     [](const Host& host) { return is_this_machine(host.name); }))
        return;
    if (options.apps.size() == 1) count_ranks(options.apps.front(), read.hosts);
    options.hosts.clear();
    options.host_file.clear();
}

std::string what_is_ignored(const Options& options) {
    std::vector<std::string> ignored = options.ignored;
    if (options.ranks_per_host > 0 && options.ranks_per_host < options.total_ranks())
        ignored.push_back(fmt::format("-ppn {}", options.ranks_per_host));
    if (ignored.empty() || options.quiet) return {};
    return fmt::format("all ranks run on this machine: {} {} ignored", fmt::join(ignored, ", "),
                       ignored.size() == 1 ? "is" : "are");
}

}  // namespace gantry::mpiexec
