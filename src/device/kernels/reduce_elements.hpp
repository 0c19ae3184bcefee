// SPDX-License-Identifier: BSD-3-Clause
//
// What a reduction does to one element, for every kernel that reduces and for their host twins: the
// same text is compiled for both, and gives the bits of layout/reduce.cpp. Kernels are compiled
// without contraction, so a product and a sum are rounded one after the other. Where a result is a
// NaN that arithmetic made, only its payload may differ.
//
//   Combine op ---- Family::visit(op, visitor) ----> visitor(Function{}), once, outside of all loops
//                                                    Function::of(a, b): a is the left operand
#pragma once

#include "reduce.hpp"

#ifndef GANTRY_DEVICE
#define GANTRY_DEVICE  // the host twin's
#endif
// A kernel whose loops are in a function copies its parameters for the call.
#define GANTRY_ALWAYS_INLINE __attribute__((always_inline))

namespace gantry::kernels {

__extension__ using Int128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

template <class R>
struct Complex {
    R real, imaginary;
};
// Its padding, where it has some, is neither read nor written.
template <class V, class I>
struct Located {
    V value;
    I index;
};

// What a product of two is computed in: promotion to a signed integer could overflow.
template <class T>
struct Wide {
    using type = T;
};
template <>
struct Wide<unsigned char> {
    using type = unsigned;
};
template <>
struct Wide<unsigned short> {
    using type = unsigned;
};

template <class T>
struct Signed;
template <>
struct Signed<unsigned char> {
    using type = signed char;
};
template <>
struct Signed<unsigned short> {
    using type = short;
};
template <>
struct Signed<unsigned> {
    using type = int;
};
template <>
struct Signed<Word> {
    using type = long long;
};
template <>
struct Signed<Unsigned128> {
    using type = Int128;
};

struct Sum {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>(a + b);
    }
    template <class R>
    GANTRY_DEVICE static Complex<R> of(Complex<R> a, Complex<R> b) {
        return {a.real + b.real, a.imaginary + b.imaginary};
    }
};
struct Product {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        using W = typename Wide<T>::type;
        return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
    }
    template <class R>
    GANTRY_DEVICE static Complex<R> of(Complex<R> a, Complex<R> b) {
        return {a.real * b.real - a.imaginary * b.imaginary,
                a.real * b.imaginary + a.imaginary * b.real};
    }
};
// Comparisons and a choice, not the GPU's minimum: of NaNs and of zeros the same operand is kept as
// on the host.
struct Min {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return a < b ? a : b;
    }
};
struct Max {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return b < a ? a : b;
    }
};
struct SignedMin {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        using S = typename Signed<T>::type;
        return static_cast<S>(a) < static_cast<S>(b) ? a : b;
    }
};
struct SignedMax {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        using S = typename Signed<T>::type;
        return static_cast<S>(b) < static_cast<S>(a) ? a : b;
    }
};
struct BitAnd {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>(a & b);
    }
};
struct BitOr {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>(a | b);
    }
};
struct BitXor {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>(a ^ b);
    }
};
struct LogicalAnd {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>(a != 0 && b != 0);
    }
};
struct LogicalOr {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>((a | b) != 0);
    }
};
struct LogicalXor {
    template <class T>
    GANTRY_DEVICE static T of(T a, T b) {
        return static_cast<T>((a != 0) != (b != 0));
    }
};
// Among equal values the lower index wins.
struct MinLocation {
    template <class P>
    GANTRY_DEVICE static P of(P a, P b) {
        const bool first = a.value < b.value || (!(b.value < a.value) && a.index < b.index);
        return {first ? a.value : b.value, first ? a.index : b.index};
    }
};
struct MaxLocation {
    template <class P>
    GANTRY_DEVICE static P of(P a, P b) {
        const bool first = b.value < a.value || (!(a.value < b.value) && a.index < b.index);
        return {first ? a.value : b.value, first ? a.index : b.index};
    }
};

// --- families: elements, and the operations that they have ---

template <class T>
struct Integers {
    using Element = T;
    static constexpr bool kVectors = sizeof(T) <= 8;  // some of them fill 16 bytes
    template <class Visitor>
    GANTRY_ALWAYS_INLINE GANTRY_DEVICE static void visit(Combine operation, Visitor visitor) {
        switch (operation) {
            case Combine::sum: return visitor(Sum{});
            case Combine::product: return visitor(Product{});
            case Combine::min: return visitor(Min{});
            case Combine::max: return visitor(Max{});
            case Combine::signed_min: return visitor(SignedMin{});
            case Combine::signed_max: return visitor(SignedMax{});
            case Combine::logical_and: return visitor(LogicalAnd{});
            case Combine::logical_or: return visitor(LogicalOr{});
            case Combine::logical_xor: return visitor(LogicalXor{});
            default: return;  // gantry_reduce_bits has the others
        }
    }
};

template <class T>
struct Reals {
    using Element = T;
    static constexpr bool kVectors = true;
    template <class Visitor>
    GANTRY_ALWAYS_INLINE GANTRY_DEVICE static void visit(Combine operation, Visitor visitor) {
        switch (operation) {
            case Combine::sum: return visitor(Sum{});
            case Combine::product: return visitor(Product{});
            case Combine::min: return visitor(Min{});
            case Combine::max: return visitor(Max{});
            default: return;
        }
    }
};

template <class R>
struct ComplexNumbers {
    using Element = Complex<R>;
    static constexpr bool kVectors = true;
    template <class Visitor>
    GANTRY_ALWAYS_INLINE GANTRY_DEVICE static void visit(Combine operation, Visitor visitor) {
        switch (operation) {
            case Combine::sum: return visitor(Sum{});
            case Combine::product: return visitor(Product{});
            default: return;
        }
    }
};

// MPI_MINLOC and MPI_MAXLOC are their min and max.
template <class V, class I>
struct Pairs {
    using Element = Located<V, I>;
    static constexpr bool kVectors = false;
    template <class Visitor>
    GANTRY_ALWAYS_INLINE GANTRY_DEVICE static void visit(Combine operation, Visitor visitor) {
        switch (operation) {
            case Combine::min: return visitor(MinLocation{});
            case Combine::max: return visitor(MaxLocation{});
            default: return;
        }
    }
};

// Bitwise operations are the same for elements of any width: these are units of bytes.
template <class T>
struct Bits {
    using Element = T;
    static constexpr bool kVectors = sizeof(T) >= 4;  // bytes are the rest
    template <class Visitor>
    GANTRY_ALWAYS_INLINE GANTRY_DEVICE static void visit(Combine operation, Visitor visitor) {
        switch (operation) {
            case Combine::bit_and: return visitor(BitAnd{});
            case Combine::bit_or: return visitor(BitOr{});
            case Combine::bit_xor: return visitor(BitXor{});
            default: return;
        }
    }
};

template <class T>
GANTRY_DEVICE inline T load_element(const T* from) {
    return *from;
}
template <class V, class I>
GANTRY_DEVICE inline Located<V, I> load_element(const Located<V, I>* from) {
    return {from->value, from->index};
}
template <class T>
GANTRY_DEVICE inline void store_element(T* to, const T& element) {
    *to = element;
}
template <class V, class I>
GANTRY_DEVICE inline void store_element(Located<V, I>* to, const Located<V, I>& element) {
    to->value = element.value;
    to->index = element.index;
}

}  // namespace gantry::kernels
