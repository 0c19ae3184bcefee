// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/dynamic/soft.hpp"

#include <mpi.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace gantry::mpi {
namespace {

// The numbers between colons; empty: it is none.
std::vector<long> numbers_of(std::string_view triplet) {
    std::vector<long> numbers;
    while (true) {
        const std::string_view word = triplet.substr(0, triplet.find(':'));
        long number = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (error != std::errc{} || end != word.data() + word.size()) return {};
        numbers.push_back(number);
        if (word.size() == triplet.size()) return numbers;
        triplet.remove_prefix(word.size() + 1);
    }
}

// The largest number of first, first + step, ... up to last that is no larger than `most`; 0: none.
long largest(long first, long last, long step, long most) {
    if (step < 0) return largest(last + (first - last) % -step, first, -step, most);
    const long bound = std::min(last, most);
    if (step == 0 || first > bound) return step == 0 && first <= most ? first : 0;
    return first + (bound - first) / step * step;
}

}  // namespace

Result<int> largest_of_soft(std::string_view list, int most) {
    long found = 0;
    for (std::string_view rest = list;;) {
        const std::string_view triplet = rest.substr(0, rest.find(','));
        const std::vector<long> numbers = numbers_of(triplet);
        if (numbers.empty() || numbers.size() > 3)
            return failure(MPI_ERR_INFO_VALUE,
                           "info key soft is '{}', which is no list of a, a:b and a:b:c", list);
        const long first = numbers[0], last = numbers.size() > 1 ? numbers[1] : first;
        const long step = numbers.size() > 2 ? numbers[2] : 1;
        found = std::max(found, largest(first, last, step, most));
        if (triplet.size() == rest.size()) break;
        rest.remove_prefix(triplet.size() + 1);
    }
    if (found < 1)
        return failure(MPI_ERR_SPAWN, "info key soft is '{}', which allows no number from 1 to {}",
                       list, most);
    return static_cast<int>(found);
}

}  // namespace gantry::mpi
