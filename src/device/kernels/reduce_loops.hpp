// SPDX-License-Identifier: BSD-3-Clause
//
// The loops of the kernels gantry_reduce_...: vectors in this GPU's memory, or in a peer's through a
// mapping, become one.
//
//   one thread   a unit of several elements of each vector where all are aligned to that, else one
//                element; then the one a grid's width further
//   the result   lies in every destination, and is valid when the stream says that the kernel has ended
//
// One kernel for each kind of element; its operation is chosen once, outside of the loops. A thread
// asks for kAtOnce vectors before it combines them: a load from a peer takes about a microsecond. Loops
// are not unrolled otherwise, since the driver translates the whole text of a module when its first
// kernel is used.
#pragma once

#include "dialect.hpp"
#include "reduce_elements.hpp"

namespace gantry::kernels {
// What a thread has of each vector at once. Narrow elements take a word: each costs instructions.
template <class T>
constexpr unsigned kUnitBytes = sizeof(T) < 4 ? 4 : 16;
template <class T>
struct alignas(kUnitBytes<T>) Lanes {
    static constexpr unsigned kCount = kUnitBytes<T> / sizeof(T);
    T lane[kCount];
};
using Quad = unsigned __attribute__((ext_vector_type(4)));
template <unsigned kBytes>
struct UnitOf;
template <>
struct UnitOf<4> {
    using type = unsigned;
};
template <>
struct UnitOf<16> {
    using type = Quad;
};

template <class T>
GANTRY_DEVICE inline Lanes<T> load_lanes(Word vector, Word at) {
    using Unit = typename UnitOf<kUnitBytes<T>>::type;
    return __builtin_bit_cast(Lanes<T>, reinterpret_cast<const Unit*>(vector)[at]);
}
template <class T>
GANTRY_DEVICE inline void store_lanes(Word vector, Word at, const Lanes<T>& lanes) {
    using Unit = typename UnitOf<kUnitBytes<T>>::type;
    reinterpret_cast<Unit*>(vector)[at] = __builtin_bit_cast(Unit, lanes);
}
template <class Function, class T>
GANTRY_DEVICE inline Lanes<T> combine(Lanes<T> a, const Lanes<T>& b) {
#pragma unroll
    for (unsigned i = 0; i < Lanes<T>::kCount; ++i)
        a.lane[i] = Function::of(a.lane[i], b.lane[i]);
    return a;
}

// source[0] op source[1] op ..., of which `load` brings the part of one thread.
inline constexpr unsigned kAtOnce = 4;
template <class Loaded, class Load, class Join>
GANTRY_ALWAYS_INLINE GANTRY_DEVICE inline Loaded reduce_sources(const ReduceWork& work, Load load,
                                                                Join join) {
    Loaded all = load(work.source[0]), next[kAtOnce - 1];
#pragma unroll 1
    for (Word first = 1; first < work.operands; first += kAtOnce - 1) {
#pragma unroll
        for (unsigned i = 0; i < kAtOnce - 1; ++i)
            if (first + i < work.operands) next[i] = load(work.source[first + i]);
#pragma unroll
        for (unsigned i = 0; i < kAtOnce - 1; ++i)
            if (first + i < work.operands) all = join(all, next[i]);
    }
    return all;
}

// Bytes [begin, begin + count elements) of the vectors.
struct Part {
    Word begin, count;
};

// This thread, of those that share the work.
struct Worker {
    Word number, of;
};
GANTRY_DEVICE inline Worker of_the_grid() {
    return {static_cast<Word>(block()) * threads() + thread(),
            static_cast<Word>(blocks()) * threads()};
}

GANTRY_DEVICE inline Word alignment_of_all(const ReduceWork& work) {
    Word odd = 0;
#pragma unroll 1
    for (Word i = 0; i < work.operands; ++i)
        odd |= work.source[i];
#pragma unroll 1
    for (Word i = 0; i < work.destinations; ++i)
        odd |= work.destination[i];
    return odd;
}

// As many whole units as there are; returns the elements done.
template <class Function, class T>
GANTRY_DEVICE inline Word reduce_lanes(const ReduceWork& work, Part part) {
    const Word units = part.count / Lanes<T>::kCount;
    const Worker worker = of_the_grid();
#pragma unroll 1
    for (Word at = worker.number; at < units; at += worker.of) {
        const auto load = [&](Word source) GANTRY_DEVICE GANTRY_ALWAYS_INLINE {
            return load_lanes<T>(source + part.begin, at);
        };
        const auto join =
            [](const Lanes<T>& a, const Lanes<T>& b)
                GANTRY_DEVICE GANTRY_ALWAYS_INLINE { return combine<Function>(a, b); };
        const Lanes<T> all = reduce_sources<Lanes<T>>(work, load, join);
#pragma unroll 1
        for (Word i = 0; i < work.destinations; ++i)
            store_lanes(work.destination[i] + part.begin, at, all);
    }
    return units * Lanes<T>::kCount;
}

template <class Function, class T>
GANTRY_DEVICE inline void reduce_elements(const ReduceWork& work, Part part, Word first,
                                          Worker worker) {
    const auto of = [&](Word vector, Word at)
                        GANTRY_DEVICE { return reinterpret_cast<T*>(vector + part.begin) + at; };
#pragma unroll 1
    for (Word at = first + worker.number; at < part.count; at += worker.of) {
        const auto load = [&](Word source) GANTRY_DEVICE GANTRY_ALWAYS_INLINE {
            return load_element(of(source, at));
        };
        const auto join = [](const T& a, const T& b)
                              GANTRY_DEVICE GANTRY_ALWAYS_INLINE { return Function::of(a, b); };
        const T all = reduce_sources<T>(work, load, join);
#pragma unroll 1
        for (Word i = 0; i < work.destinations; ++i)
            store_element(of(work.destination[i], at), all);
    }
}

template <class Family>
GANTRY_ALWAYS_INLINE GANTRY_DEVICE inline void reduce_all(const ReduceWork& work, Part part,
                                                          Word odd) {
    using T = typename Family::Element;
    Family::visit(static_cast<Combine>(work.operation),
                  [&](auto function) GANTRY_DEVICE GANTRY_ALWAYS_INLINE {
                      using Function = decltype(function);
                      Word done = 0;
                      if constexpr (Family::kVectors)
                          if (odd % kUnitBytes<T> == 0)
                              done = reduce_lanes<Function, T>(work, part);
                      reduce_elements<Function, T>(work, part, done, of_the_grid());
                  });
}

// All of the vectors, which are in elements of the family.
template <class Family>
GANTRY_ALWAYS_INLINE GANTRY_DEVICE inline void reduce_all(const ReduceWork& work) {
    reduce_all<Family>(work, {0, work.count}, alignment_of_all(work));
}

// Likewise, of short vectors, by the threads of one block.
template <class Family>
GANTRY_ALWAYS_INLINE GANTRY_DEVICE inline void reduce_in_block(const ReduceWork& work) {
    Family::visit(static_cast<Combine>(work.operation),
                  [&](auto function) GANTRY_DEVICE GANTRY_ALWAYS_INLINE {
                      reduce_elements<decltype(function), typename Family::Element>(
                          work, {0, work.count}, 0, {thread(), threads()});
                  });
}

#define GANTRY_REDUCE_KERNEL(name, ...)                        \
    GANTRY_KERNEL void gantry_reduce_##name(ReduceWork work) { \
        reduce_all<__VA_ARGS__>(work);                         \
    }

}  // namespace gantry::kernels
