// SPDX-License-Identifier: BSD-3-Clause
#include "device/reduce_kernels.hpp"

namespace gantry::device {
namespace {

using kernels::Combine;
using layout::Element;
using layout::Operation;

enum class Sign : bool { without, with };

std::optional<Combine> combine(Operation operation, Sign sign) {
    const bool with_sign = sign == Sign::with;
    switch (operation) {
        case Operation::sum: return Combine::sum;
        case Operation::prod: return Combine::product;
        case Operation::min:
        case Operation::minloc: return with_sign ? Combine::signed_min : Combine::min;
        case Operation::max:
        case Operation::maxloc: return with_sign ? Combine::signed_max : Combine::max;
        case Operation::band: return Combine::bit_and;
        case Operation::bor: return Combine::bit_or;
        case Operation::bxor: return Combine::bit_xor;
        case Operation::land: return Combine::logical_and;
        case Operation::lor: return Combine::logical_or;
        case Operation::lxor: return Combine::logical_xor;
        case Operation::replace:
        case Operation::no_op: break;  // copies
    }
    return std::nullopt;
}

struct Kind {
    ReduceKernelName name;
    Bytes bytes;
    Bytes alignment;
    Sign sign = Sign::without;
};

std::optional<Kind> kind_of(Element element) {
    using enum ReduceKernelName;
    switch (element) {
        case Element::int8: return Kind{int8, 1, 1, Sign::with};
        case Element::int16: return Kind{int16, 2, 2, Sign::with};
        case Element::int32: return Kind{int32, 4, 4, Sign::with};
        case Element::int64:
        case Element::address:
        case Element::count:
        case Element::offset: return Kind{int64, 8, 8, Sign::with};
        case Element::int128: return Kind{int128, 16, 16, Sign::with};
        case Element::uint8:
        case Element::byte:
        case Element::boolean:
        case Element::logical8: return Kind{int8, 1, 1};
        case Element::uint16:
        case Element::logical16: return Kind{int16, 2, 2};
        case Element::uint32:
        case Element::logical32: return Kind{int32, 4, 4};
        case Element::uint64:
        case Element::logical64: return Kind{int64, 8, 8};
        case Element::logical128: return Kind{int128, 16, 16};
        case Element::float32: return Kind{float32, 4, 4};
        case Element::float64: return Kind{float64, 8, 8};
        case Element::complex64: return Kind{complex64, 8, 4};
        case Element::complex128: return Kind{complex128, 16, 8};
        case Element::float_int: return Kind{float_int, 8, 4};
        case Element::double_int: return Kind{double_int, 16, 8};
        case Element::long_int: return Kind{long_int, 16, 8};
        case Element::int_int:
        case Element::integer_integer: return Kind{int_int, 8, 4};
        case Element::short_int: return Kind{short_int, 8, 4};
        case Element::real_real: return Kind{float_float, 8, 4};
        case Element::double_double: return Kind{double_double, 16, 8};
        case Element::none:
        case Element::float16:
        case Element::long_double:
        case Element::float128:
        case Element::complex_long_double:
        case Element::complex256:
        case Element::long_double_int: break;
    }
    return std::nullopt;
}

}  // namespace

std::optional<ReduceKernel> reduce_kernel(Operation operation, Element element) {
    if (layout::reduction(operation, element) == nullptr) return std::nullopt;
    const std::optional<Kind> kind = kind_of(element);
    if (!kind) return std::nullopt;
    const std::optional<Combine> how = combine(operation, kind->sign);
    if (!how) return std::nullopt;
    const bool bits =
        *how == Combine::bit_and || *how == Combine::bit_or || *how == Combine::bit_xor;
    if (bits) return ReduceKernel{ReduceKernelName::bits, *how, kind->bytes, 1, kind->bytes};
    return ReduceKernel{kind->name, *how, kind->bytes, kind->alignment, 1};
}

}  // namespace gantry::device
