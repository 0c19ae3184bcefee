// SPDX-License-Identifier: BSD-3-Clause
//
// What costs least is judged first, and whether an epoch includes the target last: with that judgement
// goes a note that the epoch has been used.
#include "rma/at_once.hpp"

#include "mpi/coll/op.hpp"
#include "mpi/datatype/datatype.hpp"
#include "mpi/engine/buffer.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/boundary.hpp"
#include "mpi/engine/pending.hpp"
#include "mpi/engine/process.hpp"
#include "mpi/rma/at_once.hpp"
#include "mpi/rma/win.hpp"

#include <cstring>

namespace gantry::mpi::at_once {
namespace {

// As find() of mpi/engine/handles.hpp, in line for the handles that are most frequent.
inline const Datatype* datatype_of(const Process& p, MPI_Datatype handle) {
    const Datatype* predefined = p.predefined(handle);
    return predefined != nullptr ? predefined : find(handle);
}

// A live window that has this rank.
inline Win* window_of(const Process& p, MPI_Win handle, int rank) {
    Win* win = p.running() ? find_in(p.wins, handle) : nullptr;
    return win != nullptr && rank >= 0 && rank < win->ranks ? win : nullptr;
}

// One whose part at that rank loads and stores reach.
inline Win* reached(const Process& p, MPI_Win handle, int rank) {
    Win* win = window_of(p, handle, rank);
    const bool reaches =
        win != nullptr && !win->checked && win->window->target(rank).loads_and_stores != nullptr;
    return reaches ? win : nullptr;
}

// Bytes of so many elements that are one run from their address on; 0: they are not, or not to be moved.
inline Bytes one_run(const Datatype* datatype, MPI_Count count) {
    if (datatype == nullptr || !datatype->committed || !datatype->layout.contiguous()) return 0;
    Bytes bytes = 0;
    const bool countless = count < 0 || __builtin_mul_overflow(datatype->layout.size,
                                                               static_cast<Bytes>(count), &bytes);
    return countless ? 0 : bytes;
}

// Asks the driver, if there is one.
[[gnu::noinline]] bool located_on_host(Win& win, const void* address, Bytes bytes) {
    if (address == nullptr || address == MPI_IN_PLACE) return false;
    const Result<device::Location> where = win.engine->transfer().locate(
        buffer(address, static_cast<MPI_Count>(bytes), *find(MPI_BYTE)));
    return where.ok() && transfer::in_host_memory(where.value());
}

// Whether the processor may read and write there.
inline bool on_host(Win& win, const void* address, Bytes bytes) {
    return win.program.on_stack_or_heap(reinterpret_cast<std::uintptr_t>(address), bytes) ||
           located_on_host(win, address, bytes);
}

// Of a predefined type whose items have no padding.
inline Bytes item_bytes(const Datatype* datatype) {
    return datatype != nullptr && datatype->predefined ? one_run(datatype, 1) : 0;
}

// With the reduction of a predefined operation on such items, null where there is none; no bytes: the
// call is for others.
inline rma::ItemChange change_of(const Datatype* datatype, const Op* op) {
    if (op == nullptr) return {};
    rma::ItemChange change{.item_bytes = item_bytes(datatype)};
    if (change.item_bytes != 0 && op->operation != layout::Operation::no_op)
        change.reduce = layout::reduction(op->operation, datatype->element);
    return change;
}

// Who looks at a window again and again never waits; others need this rank all the same.
[[gnu::noinline]] void turn_of_flushes(Win& win) {
    win.flushes_until_turn = static_cast<unsigned>(win.engine->config().window_turn);
    turn_in_passing(*win.engine);
}

inline bool flushed(int rank, MPI_Win handle) {
    const Visit visit;
    Win* win = window_of(process(), handle, rank);
    if (win == nullptr || !win->window->is_quiet(rank)) return false;
    if (--win->flushes_until_turn == 0) turn_of_flushes(*win);
    return true;
}

// A put or get that is one copy; false: it is more than that, or wrong.
template <rma::Verb verb>
[[gnu::always_inline]] inline bool try_copy(const void* origin, MPI_Count count,
                                            MPI_Datatype datatype, int rank, MPI_Aint displacement,
                                            MPI_Count target_count, MPI_Datatype target_datatype,
                                            MPI_Win handle) {
    const Visit visit;
    const Process& p = process();
    Win* win = reached(p, handle, rank);
    if (win == nullptr) return false;
    const Bytes bytes = one_run(datatype_of(p, datatype), count);
    const bool same = datatype == target_datatype && count == target_count;
    if (bytes == 0 || (!same && one_run(datatype_of(p, target_datatype), target_count) != bytes))
        return false;
    if (!on_host(*win, origin, bytes)) return false;
    std::byte* const there = win->window->reached(rank, displacement, bytes);
    if (there == nullptr) return false;
    if constexpr (verb == rma::Verb::put)
        rma::copy_at_once(there, origin, bytes);
    else
        rma::copy_at_once(const_cast<void*>(origin), there, bytes);
    return true;
}

inline bool try_accumulate(const void* origin_addr, MPI_Count origin_count,
                           MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                           MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op_handle,
                           MPI_Win handle) {
    const Visit visit;
    const Process& p = process();
    Win* win = reached(p, handle, target_rank);
    const Datatype* type = datatype_of(p, target_datatype);
    const Op* op = p.predefined(op_handle);
    rma::ItemChange change = change_of(type, op);
    const Bytes bytes = one_run(type, target_count);
    if (win == nullptr || change.reduce == nullptr || bytes == 0) return false;
    if (origin_datatype != target_datatype || origin_count != target_count) return false;
    change.count = static_cast<std::uint64_t>(target_count);
    change.operand = static_cast<const std::byte*>(origin_addr);
    return on_host(*win, origin_addr, bytes) &&
           win->window->change_at_once(target_rank, target_disp, change);
}

inline bool try_fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype,
                             int target_rank, MPI_Aint target_disp, MPI_Op op_handle,
                             MPI_Win handle) {
    const Visit visit;
    const Process& p = process();
    Win* win = reached(p, handle, target_rank);
    const Op* op = p.predefined(op_handle);
    rma::ItemChange change = change_of(datatype_of(p, datatype), op);
    if (win == nullptr || change.item_bytes == 0) return false;
    if (change.reduce != nullptr) {
        change.operand = static_cast<const std::byte*>(origin_addr);
        if (!on_host(*win, origin_addr, change.item_bytes)) return false;
    } else if (op->operation != layout::Operation::no_op) {
        return false;
    }
    change.result = static_cast<std::byte*>(result_addr);
    return on_host(*win, result_addr, change.item_bytes) &&
           win->window->change_at_once(target_rank, target_disp, change);
}

inline bool try_compare_and_swap(const void* origin_addr, const void* compare_addr,
                                 void* result_addr, MPI_Datatype datatype, int target_rank,
                                 MPI_Aint target_disp, MPI_Win handle) {
    const Visit visit;
    const Process& p = process();
    Win* win = reached(p, handle, target_rank);
    const Datatype* type = datatype_of(p, datatype);
    const Bytes bytes = item_bytes(type);
    if (win == nullptr || bytes == 0 || !swaps(type->element)) return false;
    for (const void* address : {origin_addr, compare_addr, const_cast<const void*>(result_addr)})
        if (!on_host(*win, address, bytes)) return false;
    return win->window->change_at_once(target_rank, target_disp,
                                       {.item_bytes = bytes,
                                        .operand = static_cast<const std::byte*>(origin_addr),
                                        .compare = static_cast<const std::byte*>(compare_addr),
                                        .result = static_cast<std::byte*>(result_addr)});
}

}  // namespace

int put(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
        int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
        MPI_Win win, decltype(&MPI_Put_c) judged) {
    return try_copy<rma::Verb::put>(origin_addr, origin_count, origin_datatype, target_rank,
                                    target_disp, target_count, target_datatype, win)
               ? MPI_SUCCESS
               : judged(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                        target_count, target_datatype, win);
}

int get(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
        MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
        decltype(&MPI_Get_c) judged) {
    return try_copy<rma::Verb::get>(origin_addr, origin_count, origin_datatype, target_rank,
                                    target_disp, target_count, target_datatype, win)
               ? MPI_SUCCESS
               : judged(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                        target_count, target_datatype, win);
}

int accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
               int target_rank, MPI_Aint target_disp, MPI_Count target_count,
               MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
               decltype(&MPI_Accumulate_c) judged) {
    return try_accumulate(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                          target_count, target_datatype, op, win)
               ? MPI_SUCCESS
               : judged(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                        target_count, target_datatype, op, win);
}

int fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Op op, MPI_Win win, decltype(&MPI_Fetch_and_op) judged) {
    return try_fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, win)
               ? MPI_SUCCESS
               : judged(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
}

int compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                     MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win,
                     decltype(&MPI_Compare_and_swap) judged) {
    return try_compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank,
                                target_disp, win)
               ? MPI_SUCCESS
               : judged(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp,
                        win);
}

int win_flush(int rank, MPI_Win win, decltype(&MPI_Win_flush) judged) {
    return flushed(rank, win) ? MPI_SUCCESS : judged(rank, win);
}

int win_flush_local(int rank, MPI_Win win, decltype(&MPI_Win_flush_local) judged) {
    return flushed(rank, win) ? MPI_SUCCESS : judged(rank, win);
}

bool swaps(layout::Element element) {
    using layout::Element;
    const Element before = Element::float32, from = Element::boolean;
    return element != Element::none && (element < before || element >= from) &&
           element < Element::float_int;
}

}  // namespace gantry::mpi::at_once
