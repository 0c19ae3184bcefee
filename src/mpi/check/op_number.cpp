// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/op_number.hpp"

#include "layout/reduce.hpp"
#include "mpi/coll/op.hpp"

namespace gantry::mpi {
namespace {

constexpr std::int32_t kOfProgram = -2, kOfProgramInOrder = -3;

}  // namespace

std::int32_t number_of(const Op& op) {
    if (op.predefined) return static_cast<std::int32_t>(op.operation);
    return op.commutative ? kOfProgram : kOfProgramInOrder;
}

std::string name_of_op(std::int32_t number) {
    if (number == kOfProgram) return "an operation of the program";
    if (number == kOfProgramInOrder) return "an operation of the program that does not commute";
    return layout::name(static_cast<layout::Operation>(number));
}

}  // namespace gantry::mpi
