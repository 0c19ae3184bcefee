// SPDX-License-Identifier: BSD-3-Clause
//
// A published figure beside ours. Every amount of a figure is the same kind of ratio, so that machines of
// 2011 and of today can be compared.
#pragma once

#include "bench/chart.hpp"

#include <optional>
#include <string>
#include <vector>

namespace gantry::reproduce {

enum class Unit {
    lower,  // how much less time than the baseline, of 1
    times   // so many times the baseline's
};

// What one way of measuring gave, with the interval it lies in where it does not repeat exactly; or, in
// a few words, why it gave nothing.
struct Ours {
    std::optional<double> value{}, low{}, high{};
    std::string reason{};
    std::string story{};  // more of the setting, or of the reason
};

enum class Verdict { holds, missed, not_shown };

struct Figure {
    int row = 0;  // of the list of published claims
    std::string claim{}, setting{}, baseline{};
    Unit unit = Unit::lower;
    std::optional<double> published{};
    bool verified = true;  // false: the published number is remembered, nobody here has read it
    Ours world{}, processes{}, gpu{};
    std::optional<double> ideal{};
    // What the world's amount must reach; for `at_most`, must not pass.
    std::optional<double> least{}, most{};
    std::string note{};

    Verdict verdict() const;
    std::string bound() const;  // "at least 45.0 %"
};

struct Evidence {
    std::vector<Figure> figures;
    std::vector<std::string> pictures;  // SVG
};

std::string words(Unit unit, const std::optional<double>& value);
std::string words(Unit unit, const Ours& ours);  // never empty
std::string words(Verdict verdict);

// The rows that the simulated world shows; only those in `rows`, all if that is empty.
void add_world_figures(Evidence& evidence, const std::vector<int>& rows);
// Runs of gantry-bench and of the applications: on the simulated GPU, and on a GPU where there is one.
// `scale`: how much slower than its machine the simulated GPU is, so that this one keeps up.
void add_process_figures(Evidence& evidence, const std::string& folder, int scale);

void print_table(const Evidence& evidence);
std::string json_of(const Evidence& evidence);
std::string page_of(const Evidence& evidence);

}  // namespace gantry::reproduce
