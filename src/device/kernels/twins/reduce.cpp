// SPDX-License-Identifier: BSD-3-Clause
//
// Host twins of the kernels gantry_reduce_...: the same elements, one after the other.
#include "device/kernels/reduce_elements.hpp"
#include "kernels.hpp"
#include "twins.hpp"

#include <cstring>

namespace gantry::kernels {
namespace {

ReduceWork work_of(const simgpu_launch* launch) {
    ReduceWork work;
    std::memcpy(&work, launch->parameters[0], sizeof work);
    return work;
}

template <class Family>
void reduce_vectors(const ReduceWork& work) {
    using T = typename Family::Element;
    const auto of = [](Word vector, Word at) { return reinterpret_cast<T*>(vector) + at; };
    Family::visit(static_cast<Combine>(work.operation), [&](auto function) {
        for (Word at = 0; at < work.count; ++at) {
            T all = load_element(of(work.source[0], at));
            for (Word i = 1; i < work.operands; ++i)
                all = function.of(all, load_element(of(work.source[i], at)));
            for (Word i = 0; i < work.destinations; ++i)
                store_element(of(work.destination[i], at), all);
        }
    });
}

template <class Family>
void reduce(const simgpu_launch* launch) {
    reduce_vectors<Family>(work_of(launch));
}

template <class Family>
void traffic(const simgpu_launch* launch, uint64_t* device_bytes, uint64_t* link_bytes) {
    const ReduceWork work = work_of(launch);
    *device_bytes =
        (work.operands + work.destinations) * work.count * sizeof(typename Family::Element);
    *link_bytes = 0;
}

}  // namespace

void reduce_on_host(const ReduceWork& work, ResidentElement element) {
    switch (element) {
#define GANTRY_REDUCE(name, ...) \
    case ResidentElement::name: return reduce_vectors<__VA_ARGS__>(work);
        GANTRY_REDUCE_RESIDENT(GANTRY_REDUCE)
#undef GANTRY_REDUCE
    }
}

void add_reduce(void (*add)(const simgpu_twin* twin)) {
#define GANTRY_REDUCE_TWIN(name, ...) \
    {"gantry_reduce_" #name, &reduce<__VA_ARGS__>, &traffic<__VA_ARGS__>, 0},
    static const simgpu_twin kTwins[] = {
        GANTRY_REDUCE_INTEGERS(GANTRY_REDUCE_TWIN) GANTRY_REDUCE_REALS(GANTRY_REDUCE_TWIN)
            GANTRY_REDUCE_PAIRS(GANTRY_REDUCE_TWIN) GANTRY_REDUCE_TWIN(bits, Bits<unsigned char>)};
#undef GANTRY_REDUCE_TWIN
    for (const simgpu_twin& twin : kTwins)
        add(&twin);
}

}  // namespace gantry::kernels
