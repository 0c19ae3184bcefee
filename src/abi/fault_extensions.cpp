// SPDX-License-Identifier: BSD-3-Clause
//
// mpi-ext.h: going on without ranks that died (ULFM).
#pragma GCC visibility push(default)
#include <mpi-ext.h>
#pragma GCC visibility pop

#include "abi/call.hpp"
#include "mpi/bodies.hpp"

using namespace gantry;
using abi::Call;
using abi::When;

extern "C" {

int MPIX_Comm_revoke(MPI_Comm comm) {
    Call call("MPIX_Comm_revoke", When::running);
    auto* comm_ = call.object("comm", comm);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_revoke(*comm_));
}

int MPIX_Comm_is_revoked(MPI_Comm comm, int* flag) {
    Call call("MPIX_Comm_is_revoked", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("flag", flag);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_is_revoked(*comm_, flag));
}

int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm) {
    Call call("MPIX_Comm_shrink", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("newcomm", newcomm);
    if (call.failed()) return call.leave();
    return call.leave(mpi::wait(mpi::comm_shrink(*comm_, newcomm)));
}

int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
    Call call("MPIX_Comm_ishrink", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("newcomm", newcomm);
    call.pointer("request", request);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_ishrink(*comm_, newcomm, request));
}

int MPIX_Comm_agree(MPI_Comm comm, int* flag) {
    Call call("MPIX_Comm_agree", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("flag", flag);
    if (call.failed()) return call.leave();
    return call.leave(mpi::wait(mpi::comm_agree(*comm_, flag)));
}

int MPIX_Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
    Call call("MPIX_Comm_iagree", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("flag", flag);
    call.pointer("request", request);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_iagree(*comm_, flag, request));
}

int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* failedgrp) {
    Call call("MPIX_Comm_get_failed", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("failedgrp", failedgrp);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_get_failed(*comm_, failedgrp));
}

int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int* num_acked) {
    Call call("MPIX_Comm_ack_failed", When::running);
    auto* comm_ = call.object("comm", comm);
    call.not_negative("num_to_ack", num_to_ack, MPI_ERR_ARG);
    call.pointer("num_acked", num_acked);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_ack_failed(*comm_, num_to_ack, num_acked));
}

int MPIX_Comm_failure_ack(MPI_Comm comm) {
    Call call("MPIX_Comm_failure_ack", When::running);
    auto* comm_ = call.object("comm", comm);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_failure_ack(*comm_));
}

int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp) {
    Call call("MPIX_Comm_failure_get_acked", When::running);
    auto* comm_ = call.object("comm", comm);
    call.pointer("failedgrp", failedgrp);
    if (call.failed()) return call.leave();
    return call.leave(mpi::comm_failure_get_acked(*comm_, failedgrp));
}

int MPIX_Win_revoke(MPI_Win win) {
    Call call("MPIX_Win_revoke", When::running);
    auto* win_ = call.object("win", win);
    if (call.failed()) return call.leave();
    return call.leave(mpi::win_revoke(*win_));
}

int MPIX_Win_get_failed(MPI_Win win, MPI_Group* failedgrp) {
    Call call("MPIX_Win_get_failed", When::running);
    auto* win_ = call.object("win", win);
    call.pointer("failedgrp", failedgrp);
    if (call.failed()) return call.leave();
    return call.leave(mpi::win_get_failed(*win_, failedgrp));
}

int MPIX_File_revoke(MPI_File fh) {
    Call call("MPIX_File_revoke", When::running);
    auto* fh_ = call.object("fh", fh);
    if (call.failed()) return call.leave();
    return call.leave(mpi::file_revoke(*fh_));
}
}
