// SPDX-License-Identifier: BSD-3-Clause
//
// Jobs of gantry-bench and of the applications, and what they printed.
#pragma once

#include "figure.hpp"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace gantry::reproduce {

struct Place {
    std::filesystem::path programs;  // mpiexec and gantry-bench
    std::string environment;         // words of env(1) in front
    int ranks = 2;

    Place with(const std::string& variables) const {
        Place more = *this;
        more.environment += " " + variables;
        return more;
    }
    Place of_ranks(int other) const {
        Place more = *this;
        more.ranks = other;
        return more;
    }
};

// A median, and the interval that it lies in.
struct Time {
    double value = 0, low = 0, high = 0;
};

// What a job printed: a time for each way, in any unit; empty, with the reason, where it failed.
struct Job {
    std::map<std::string, Time> ways;
    std::string failure;

    std::optional<Time> time(const std::string& way) const;
};
// The library's way is called `kLibrary`, whatever it calls itself.
inline constexpr const char* kLibrary = "library";
// One size of one benchmark.
Job run_bench(const Place& place, const std::string& words);
// Steps of an application by `copies`, `staged` and `datatypes`, in milliseconds.
Job run_application(const Place& place, const std::string& words);

// How much less time `way` of one job takes than `baseline` of another one, which may be the same; the
// interval is as wide as both together allow.
Ours lower(const Job& job, const std::string& way, const Job& other, const std::string& baseline);
// The median of what jobs give that run one after the other, in the interval of all of them.
Ours median_of(int jobs, const std::function<Ours()>& job);
Ours failed(const std::string& story);

}  // namespace gantry::reproduce
