// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine.hpp"

#include "model/builtin.hpp"

#include <mpi.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

namespace gantry::model {
namespace {

Result<std::string> read_file(const std::string& name) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "rbe"),
                                                               &std::fclose);
    if (file == nullptr)
        return failure(MPI_ERR_NO_SUCH_FILE, "reading the machine description {}: {}", name,
                       std::strerror(errno));
    std::string text;
    char part[4096];
    for (std::size_t got; (got = std::fread(part, 1, sizeof part, file.get())) > 0;)
        text.append(part, got);
    if (std::ferror(file.get()) != 0)
        return failure(MPI_ERR_IO, "reading the machine description {}", name);
    return text;
}

}  // namespace

std::vector<std::string_view> built_in_machines() {
    std::vector<std::string_view> names;
    for (const BuiltIn& machine : built_in_texts())
        names.push_back(machine.name);
    return names;
}

Result<Machine> load(std::string_view name_or_file) {
    for (const BuiltIn& machine : built_in_texts())
        if (machine.name == name_or_file) return from_json(machine.json, machine.name);
    const std::string name(name_or_file);
    const bool meant_as_file = name.find('/') != std::string::npos || name.ends_with(".json");
    std::error_code unknown;
    if (!meant_as_file && !std::filesystem::is_regular_file(name, unknown)) {
        std::string known;
        for (const BuiltIn& machine : built_in_texts())
            known += fmt::format(" {}", machine.name);
        return failure(MPI_ERR_ARG,
                       "no machine is called \"{}\", nor is there a file of that name; built in:{}",
                       name, known);
    }
    Result<std::string> text = read_file(name);
    if (!text.ok()) return text.status();
    return from_json(text.value(), name);
}

Link built_in_network(std::string_view name) {
    for (const BuiltIn& network : built_in_network_texts())
        if (network.name == name) {
            Result<Link> link = link_from_json(network.json, name);
            GANTRY_ASSERT(link.ok());
            return *link;
        }
    assertion_failed("a network of that name is built in", __FILE__, __LINE__);
}

}  // namespace gantry::model
