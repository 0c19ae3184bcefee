// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/upbringing.hpp"

#include "mpi/engine/process.hpp"

#include <fmt/format.h>

namespace gantry::mpi {
namespace {

// The values of the standard (MPI 5.0 section 11.8.4); null: it has no such one.
Errhandler* named(std::string_view value) {
    const Process& p = process();
    if (value == "mpi_errors_are_fatal") return p.errors_are_fatal;
    if (value == "mpi_errors_abort") return p.errors_abort;
    if (value == "mpi_errors_return") return p.errors_return;
    return nullptr;
}

}  // namespace

Status check_upbringing(const InfoPairs& info) {
    const std::string* const value = value_of(info, kInitialErrhandlerKey);
    if (value == nullptr || named(*value) != nullptr) return success();
    return failure(MPI_ERR_INFO_VALUE,
                   "info key {} is '{}'; it may be mpi_errors_are_fatal, mpi_errors_abort or "
                   "mpi_errors_return",
                   kInitialErrhandlerKey, *value);
}

std::string upbringing(const job::SpawnOrder& order, std::string_view port) {
    std::string text(port);
    for (std::size_t program = 0; program < order.programs.size(); ++program)
        if (const std::string* const value =
                value_of(order.programs[program].info, kInitialErrhandlerKey))
            text += fmt::format(" {}={}", program, *value);
    return text;
}

std::string_view parents_port(std::string_view upbringing) {
    return upbringing.substr(0, upbringing.find(' '));
}

Errhandler* initial_errhandler(std::string_view upbringing, int program) {
    const std::string begin = fmt::format(" {}=", program);
    const std::size_t found = upbringing.find(begin);
    if (found == std::string_view::npos) return nullptr;
    const std::string_view value = upbringing.substr(found + begin.size());
    return named(value.substr(0, value.find(' ')));
}

}  // namespace gantry::mpi
