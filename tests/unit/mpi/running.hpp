// SPDX-License-Identifier: BSD-3-Clause
//
// MPI_Init and MPI_Finalize around all tests of the program (each works once per process), as a job
// of one rank without a launcher. Tests of what is legal before Init use their own process object's
// parts and do not need it.
#pragma once

#include "mpi/bodies.hpp"
#include "mpi/coll/collective_call.hpp"
#include "mpi/engine/process.hpp"

#include <gtest/gtest.h>

namespace gantry::mpi {

class RunningMpi : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        if (process().phase != Process::Phase::before) return;
        int provided = 0;
        Status started = wait(init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
        ASSERT_TRUE(started.ok()) << started.text();
        EXPECT_EQ(provided, MPI_THREAD_MULTIPLE);
        process().self->errhandler = process().errors_return;
        process().world->errhandler = process().errors_return;
    }
    Comm& world() { return *process().world; }
    Comm& self() { return *process().self; }
    static Datatype& type(MPI_Datatype handle) { return *find(handle); }
};

// EXPECT that a call is good, or fails with a class; the sentence is shown otherwise.
inline void expect_ok(const Status& status) {
    EXPECT_TRUE(status.ok()) << status.text();
}
inline void expect_class(const Status& status, int error_class) {
    EXPECT_EQ(status.error_class(), error_class) << status.text();
    EXPECT_FALSE(status.text().empty());
}

}  // namespace gantry::mpi
