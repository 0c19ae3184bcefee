// SPDX-License-Identifier: BSD-3-Clause
//
// Between the int form of a function and its body, which has the widths of the large-count form.
#pragma once

#include "abi/call.hpp"

#include <climits>
#include <memory>
#include <new>

namespace gantry::abi {

// A count that the int form of a function cannot express.
inline int narrow(MPI_Count value) {
    return value < INT_MIN || value > INT_MAX ? MPI_UNDEFINED : static_cast<int>(value);
}

// An array argument of the int form with the element type of the large-count form. Lives as long as
// the call: a body that needs the values later copies them.
template <class Wide>
class Widened {
  public:
    template <class Narrow>
    Widened(Call& call, const Narrow* values, MPI_Count number) {
        if (values == nullptr || number <= 0) return;
        data_ = few_;
        if (number > kFew) {
            many_.reset(new (std::nothrow) Wide[static_cast<std::size_t>(number)]);
            data_ = many_.get();
            if (data_ == nullptr) {
                call.no_memory();
                return;
            }
        }
        for (MPI_Count i = 0; i < number; ++i)
            data_[i] = values[i];
    }
    const Wide* data() const { return data_; }

  private:
    static constexpr MPI_Count kFew = 32;
    Wide few_[kFew];
    std::unique_ptr<Wide[]> many_;
    Wide* data_ = nullptr;
};

}  // namespace gantry::abi
