// SPDX-License-Identifier: BSD-3-Clause
//
// SharedPointer: the file pointer that all ranks of a file use together. It is a number in a window on
// rank 0, which others add to without its help where they reach its memory, and by messages where
// they do not. A file of one rank has just a number.
#pragma once

#include "base/task.hpp"
#include "rma/windows.hpp"

#include <cstdint>
#include <memory>

namespace gantry::io {

class SharedPointer {
  public:
    SharedPointer();
    ~SharedPointer();

    // By all ranks.
    Task<Status> open(Executor& executor, rma::Windows& windows, p2p::Group group);
    Task<Status> close(Executor& executor);
    // Whoever waits for it hears that.
    void revoke(const Status& why);
    // `before`: what it was.
    Task<Status> add(Executor& executor, std::int64_t etypes, std::int64_t* before);
    Task<Status> set(Executor& executor, std::int64_t to);

  private:
    Task<Status> change(Executor& executor, layout::Operation operation, std::int64_t operand,
                        std::int64_t* before);

    std::unique_ptr<rma::Window> window_;  // null: the file has one rank
    std::int64_t alone_ = 0;
    const layout::Layout number_ = layout::contiguous_layout(sizeof(std::int64_t));
};

}  // namespace gantry::io
