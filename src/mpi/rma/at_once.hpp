// SPDX-License-Identifier: BSD-3-Clause
//
// One-sided calls that are a few loads and stores, straight from the entry point: copies and changes of
// what lies in host memory on both sides and is reached here (rma/at_once.hpp), and flushes that have
// nothing to wait for. Each of these has the arguments of its MPI function as they are, and does all of
// the call or leaves it to `judged`, also for every argument that is not good: the rest of the entry
// point, which judges each argument and calls the body.
#pragma once

#include "layout/reduce.hpp"

#include <mpi.h>

namespace gantry::mpi::at_once {

int put(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
        int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype,
        MPI_Win win, decltype(&MPI_Put_c) judged);
int get(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
        MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
        decltype(&MPI_Get_c) judged);
int accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
               int target_rank, MPI_Aint target_disp, MPI_Count target_count,
               MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
               decltype(&MPI_Accumulate_c) judged);
int fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Op op, MPI_Win win, decltype(&MPI_Fetch_and_op) judged);
int compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                     MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win,
                     decltype(&MPI_Compare_and_swap) judged);
int win_flush(int rank, MPI_Win win, decltype(&MPI_Win_flush) judged);
int win_flush_local(int rank, MPI_Win win, decltype(&MPI_Win_flush_local) judged);

// What MPI_Compare_and_swap takes: integers, logicals and bytes (MPI 5.0 section 12.3.4).
bool swaps(layout::Element element);

}  // namespace gantry::mpi::at_once
