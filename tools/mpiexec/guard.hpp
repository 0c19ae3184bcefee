// SPDX-License-Identifier: BSD-3-Clause
//
// A small child process that outlives mpiexec by a moment. When mpiexec dies without having ended
// its job (kill -9), the kernel ends the ranks (PR_SET_PDEATHSIG) but not what they started; the
// guard sees its pipe close and kills their process groups.
#pragma once

#include <sys/types.h>

namespace gantry::mpiexec {

class Guard {
  public:
    Guard();
    ~Guard();  // the job has ended in order: the guard leaves
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    void watch(pid_t group);
    void forget(pid_t group);  // it has ended, and its number may become another's

  private:
    int pipe_ = -1;
    pid_t process_ = -1;
};

}  // namespace gantry::mpiexec
