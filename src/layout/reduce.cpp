// SPDX-License-Identifier: BSD-3-Clause
//
// The table of reductions: one template per operation, one row per kind of item. Integers wrap
// around (they are added as unsigned).
#include "layout/reduce.hpp"

#include "layout/half.hpp"

#include <cstring>
#include <type_traits>

// The loops over items are what all reductions of host memory wait for: the compiler is to make vectors of
// them, though it knows neither their length nor that both sides are apart.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("tree-vectorize", "vect-cost-model=dynamic")
#endif

namespace gantry::layout {
namespace {

__extension__ using Int128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;
__extension__ using Float128 = __float128;

template <class Real>
struct Complex {
    Real real, imaginary;
};
template <class Value, class Index>
struct Located {
    Value value;
    Index index;
};

template <class T>
struct Unsigned {
    using type = std::make_unsigned_t<T>;
};
template <>
struct Unsigned<Int128> {
    using type = Unsigned128;
};

template <class T>
constexpr bool is_integer = std::is_integral_v<T> || std::is_same_v<T, Int128>;

struct Sum {
    template <class T>
    static T apply(T a, T b) {
        if constexpr (is_integer<T>) {
            using U = typename Unsigned<T>::type;
            return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
        } else {
            return a + b;
        }
    }
    template <class R>
    static Complex<R> apply(Complex<R> a, Complex<R> b) {
        return {a.real + b.real, a.imaginary + b.imaginary};
    }
};
struct Product {
    template <class T>
    static T apply(T a, T b) {
        if constexpr (is_integer<T> && sizeof(T) < sizeof(int)) {
            // Wide enough that promotion to a signed int cannot overflow.
            return static_cast<T>(static_cast<unsigned>(a) * static_cast<unsigned>(b));
        } else if constexpr (is_integer<T>) {
            using U = typename Unsigned<T>::type;
            return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
        } else {
            return a * b;
        }
    }
    template <class R>
    static Complex<R> apply(Complex<R> a, Complex<R> b) {
        return {a.real * b.real - a.imaginary * b.imaginary,
                a.real * b.imaginary + a.imaginary * b.real};
    }
};
struct Minimum {
    template <class T>
    static T apply(T a, T b) {
        return a < b ? a : b;
    }
};
struct Maximum {
    template <class T>
    static T apply(T a, T b) {
        return b < a ? a : b;
    }
};
struct BitAnd {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a & b);
    }
};
struct BitOr {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a | b);
    }
};
struct BitXor {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};
struct LogicalAnd {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a != T{} && b != T{});
    }
};
struct LogicalOr {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>(a != T{} || b != T{});
    }
};
struct LogicalXor {
    template <class T>
    static T apply(T a, T b) {
        return static_cast<T>((a != T{}) != (b != T{}));
    }
};
// Among equal values the lowest index wins (MPI 5.0 section 6.9.4).
struct MinimumLocation {
    template <class P>
    static P apply(P a, P b) {
        if (a.value < b.value) return a;
        if (b.value < a.value) return b;
        return a.index < b.index ? a : b;
    }
};
struct MaximumLocation {
    template <class P>
    static P apply(P a, P b) {
        if (b.value < a.value) return a;
        if (a.value < b.value) return b;
        return a.index < b.index ? a : b;
    }
};

template <class Function, class T>
void each(const void* first, void* second, std::size_t count) {
    const T* a = static_cast<const T*>(first);
    T* b = static_cast<T*>(second);
    for (std::size_t i = 0; i < count; ++i)
        b[i] = Function::apply(a[i], b[i]);
}
template <class T>
void replace(const void* first, void* second, std::size_t count) {
    std::memmove(second, first, count * sizeof(T));
}
// Pairs go member by member: the padding behind the last one need not be the caller's memory.
struct First {
    template <class P>
    static P apply(P a, P) {
        return a;
    }
};
template <class Function, class P>
void each_pair(const void* first, void* second, std::size_t count) {
    const P* a = static_cast<const P*>(first);
    P* b = static_cast<P*>(second);
    for (std::size_t i = 0; i < count; ++i) {
        const P chosen = Function::apply(P{a[i].value, a[i].index}, P{b[i].value, b[i].index});
        b[i].value = chosen.value;
        b[i].index = chosen.index;
    }
}
void keep(const void*, void*, std::size_t) {}

using Row = Reduction[kOperations];
constexpr int at(Operation operation) {
    return static_cast<int>(operation);
}

template <class T>
constexpr void moves(Row& row) {
    row[at(Operation::replace)] = replace<T>;
    row[at(Operation::no_op)] = keep;
}
template <class T>
constexpr void arithmetic(Row& row) {
    row[at(Operation::sum)] = each<Sum, T>;
    row[at(Operation::prod)] = each<Product, T>;
}
template <class T>
constexpr void order(Row& row) {
    row[at(Operation::min)] = each<Minimum, T>;
    row[at(Operation::max)] = each<Maximum, T>;
}
template <class T>
constexpr void logical(Row& row) {
    row[at(Operation::land)] = each<LogicalAnd, T>;
    row[at(Operation::lor)] = each<LogicalOr, T>;
    row[at(Operation::lxor)] = each<LogicalXor, T>;
}
template <class T>
constexpr void bitwise(Row& row) {
    row[at(Operation::band)] = each<BitAnd, T>;
    row[at(Operation::bor)] = each<BitOr, T>;
    row[at(Operation::bxor)] = each<BitXor, T>;
}
template <class T>
constexpr void integer(Row& row) {
    moves<T>(row), arithmetic<T>(row), order<T>(row), logical<T>(row), bitwise<T>(row);
}
template <class T>
constexpr void real(Row& row) {
    moves<T>(row), arithmetic<T>(row), order<T>(row);
}
template <class R>
constexpr void complex(Row& row) {
    moves<Complex<R>>(row), arithmetic<Complex<R>>(row);
}
template <class T>
constexpr void truth(Row& row) {
    moves<T>(row), logical<T>(row);
}
template <class Value, class Index>
constexpr void pair(Row& row) {
    using P = Located<Value, Index>;
    row[at(Operation::replace)] = each_pair<First, P>;
    row[at(Operation::no_op)] = keep;
    row[at(Operation::minloc)] = each_pair<MinimumLocation, P>;
    row[at(Operation::maxloc)] = each_pair<MaximumLocation, P>;
}

struct Table {
    Row rows[kElements] = {};
    constexpr Row& operator[](Element element) { return rows[static_cast<int>(element)]; }
    constexpr Table() {
        Table& table = *this;
        integer<std::int8_t>(table[Element::int8]);
        integer<std::int16_t>(table[Element::int16]);
        integer<std::int32_t>(table[Element::int32]);
        integer<std::int64_t>(table[Element::int64]);
        integer<Int128>(table[Element::int128]);
        integer<std::uint8_t>(table[Element::uint8]);
        integer<std::uint16_t>(table[Element::uint16]);
        integer<std::uint32_t>(table[Element::uint32]);
        integer<std::uint64_t>(table[Element::uint64]);
        integer<std::intptr_t>(table[Element::address]);
        integer<std::int64_t>(table[Element::count]);
        integer<std::int64_t>(table[Element::offset]);
        real<Half>(table[Element::float16]);
        real<float>(table[Element::float32]);
        real<double>(table[Element::float64]);
        real<long double>(table[Element::long_double]);
        real<Float128>(table[Element::float128]);
        complex<float>(table[Element::complex64]);
        complex<double>(table[Element::complex128]);
        complex<long double>(table[Element::complex_long_double]);
        complex<Float128>(table[Element::complex256]);
        truth<std::uint8_t>(table[Element::boolean]);
        truth<std::int8_t>(table[Element::logical8]);
        truth<std::int16_t>(table[Element::logical16]);
        truth<std::int32_t>(table[Element::logical32]);
        truth<std::int64_t>(table[Element::logical64]);
        truth<Int128>(table[Element::logical128]);
        moves<std::uint8_t>(table[Element::byte]);
        bitwise<std::uint8_t>(table[Element::byte]);
        pair<float, int>(table[Element::float_int]);
        pair<double, int>(table[Element::double_int]);
        pair<long, int>(table[Element::long_int]);
        pair<int, int>(table[Element::int_int]);
        pair<short, int>(table[Element::short_int]);
        pair<long double, int>(table[Element::long_double_int]);
        pair<float, float>(table[Element::real_real]);
        pair<double, double>(table[Element::double_double]);
        pair<int, int>(table[Element::integer_integer]);
    }
};

}  // namespace

Reduction reduction(Operation operation, Element element) {
    static constexpr Table table;
    return table.rows[static_cast<int>(element)][at(operation)];
}

const char* name(Operation operation) {
    constexpr const char* names[kOperations] = {
        "MPI_SUM",  "MPI_MIN", "MPI_MAX",  "MPI_PROD",   "MPI_BAND",   "MPI_BOR",     "MPI_BXOR",
        "MPI_LAND", "MPI_LOR", "MPI_LXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP"};
    return names[at(operation)];
}

}  // namespace gantry::layout
