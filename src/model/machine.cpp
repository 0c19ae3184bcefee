// SPDX-License-Identifier: BSD-3-Clause
#include "model/machine.hpp"

#include "model/builtin.hpp"

#include <mpi.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

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
    if (name_or_file.find('/') == std::string_view::npos && !name_or_file.ends_with(".json")) {
        std::string known;
        for (const BuiltIn& machine : built_in_texts())
            known += fmt::format(" {}", machine.name);
        return failure(
            MPI_ERR_ARG,
            "no machine is called \"{}\"; built in:{}; or give a file name that ends in .json",
            name_or_file, known);
    }
    const std::string name(name_or_file);
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
