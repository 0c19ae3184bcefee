// SPDX-License-Identifier: BSD-3-Clause
//
// Info objects: ordered pairs of key and value. They work before MPI_Init and after MPI_Finalize.
#pragma once

#include "mpi/engine/handles.hpp"
#include "mpi/engine/object.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::mpi {

using InfoPairs = std::vector<std::pair<std::string, std::string>>;

struct Info : Object<MPI_Info> {
    InfoPairs pairs;
    bool read_only = false;
};

const std::string* value_of(const InfoPairs& pairs, std::string_view key);
void set_pair(InfoPairs& pairs, std::string_view key, std::string_view value);

// Adds what a program wishes of an object, except what only Gantry knows.
void take_hints(InfoPairs& hints, const InfoPairs& wished);

// A new info object with these pairs, for the program.
MPI_Info make_info(InfoPairs pairs);  // MPI_INFO_NULL when memory is exhausted

// What Gantry knows about itself: the kinds of memory its calls take (MPI 5.0 section 12.5).
inline constexpr std::string_view kMemoryKindsKey = "mpi_memory_alloc_kinds";
inline constexpr std::string_view kMemoryKinds = "mpi,system,cuda:host,cuda:device,cuda:managed";

}  // namespace gantry::mpi
