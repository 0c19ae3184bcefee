// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Dims_create: how to factorise a number of processes.
#include "mpi/bodies.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gantry::mpi {
namespace {

// More processes than an int can count.
constexpr std::int64_t kTooMany = std::int64_t{1} << 31;

// The prime factors, smallest first.
std::vector<int> prime_factors(int number) {
    std::vector<int> factors;
    for (int divisor = 2; divisor <= number / divisor; ++divisor) {
        while (number % divisor == 0) {
            factors.push_back(divisor);
            number /= divisor;
        }
    }
    if (number > 1) factors.push_back(number);
    return factors;
}

// Largest first.
std::vector<int> divisors_of(int number) {
    std::vector<int> divisors;
    for (int divisor = 1; divisor <= number / divisor; ++divisor) {
        if (number % divisor != 0) continue;
        divisors.push_back(divisor);
        if (divisor != number / divisor) divisors.push_back(number / divisor);
    }
    std::sort(divisors.begin(), divisors.end(), std::greater<>());
    return divisors;
}

// Is base to the power of exponent at most limit?
bool power_fits(std::int64_t base, std::size_t exponent, std::int64_t limit) {
    std::int64_t power = 1;
    for (std::size_t i = 0; i < exponent; ++i) {
        power *= base;
        if (power > limit) return false;
    }
    return true;
}

// A number as the product of `places` factors that lie as close together as they can: the largest
// and the smallest differ least and, among equals, the small ones are largest. Branch and bound:
// from the smallest factor up, the largest candidate first, so that the first answer is nearly the
// best one and ends most branches at their beginning.
class ClosestFactors {
  public:
    ClosestFactors(int number, std::size_t places)
        : divisors_(divisors_of(number)), places_(places), difference_(number) {
        extend(number);
    }
    const std::vector<int>& ascending() const { return best_; }

  private:
    void extend(int rest) {
        const std::size_t open = places_ - chosen_.size();
        const int least = chosen_.empty() ? 1 : chosen_.back();
        if (open == 1) {
            const int smallest = chosen_.empty() ? rest : chosen_.front();
            if (rest < least || rest - smallest >= difference_) return;
            difference_ = rest - smallest;
            best_ = chosen_;
            best_.push_back(rest);
            return;
        }
        for (int factor : divisors_) {
            if (factor < least) return;
            if (rest % factor != 0 || !power_fits(factor, open, rest)) continue;
            // What is left must fit below a largest factor that would be an improvement.
            const int smallest = chosen_.empty() ? factor : chosen_.front();
            const std::int64_t largest = std::int64_t{smallest} + difference_ - 1;
            if (power_fits(largest, open - 1, rest / factor - 1)) return;
            chosen_.push_back(factor);
            extend(rest / factor);
            chosen_.pop_back();
        }
    }

    std::vector<int> divisors_;
    std::size_t places_;
    int difference_;  // of the best answer so far; the next one must be below
    std::vector<int> chosen_, best_;
};

// As many sizes as there are places, largest first.
std::vector<int> balanced(int number, std::size_t places) {
    std::vector<int> sizes = prime_factors(number);
    if (sizes.size() > places) sizes = ClosestFactors(number, places).ascending();
    std::reverse(sizes.begin(), sizes.end());
    sizes.resize(places, 1);
    return sizes;
}

}  // namespace

Status dims_create(int nnodes, int ndims, int* dims) {
    if (nnodes < 1) return failure(MPI_ERR_ARG, "nnodes is {} and must be positive", nnodes);
    if (ndims < 0) return failure(MPI_ERR_DIMS, "ndims is {} and must not be negative", ndims);
    std::int64_t fixed = 1;
    std::size_t open = 0;
    for (int i = 0; i < ndims; ++i) {
        if (dims[i] < 0) return failure(MPI_ERR_DIMS, "dimension {} has {} processes", i, dims[i]);
        if (dims[i] == 0)
            ++open;
        else
            fixed = std::min<std::int64_t>(fixed * dims[i], kTooMany);
    }
    if (nnodes % fixed != 0 || (open == 0 && fixed != nnodes))
        return failure(MPI_ERR_DIMS,
                       "{} processes cannot be arranged with {} in the dimensions that are given",
                       nnodes, fixed);
    if (open == 0) return success();
    const std::vector<int> sizes = balanced(static_cast<int>(nnodes / fixed), open);
    std::size_t next = 0;
    for (int i = 0; i < ndims; ++i)
        if (dims[i] == 0) dims[i] = sizes[next++];
    return success();
}

}  // namespace gantry::mpi
