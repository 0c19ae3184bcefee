// SPDX-License-Identifier: BSD-3-Clause
//
// FusedCopies: the small copies between a GPU and memory of other processes, in one context. One
// that finds nothing in flight goes at once by a copy engine, which is the faster way for a single
// copy; those that come while something is in flight wait and then go together in one kernel
// launch (facts/gpu-measured.md 1.3), each ending by flags of its own:
//
//   copy --------> [copy engine, flag]
//   copies ..waiting..               [one kernel: flag flag flag flag]
//   more copies ....waiting...                                       [one kernel: ...]
//
// Without kernels, or without flags, those that waited go by the copy engine, one after the other.
#pragma once

#include "device/cuda/flags.hpp"
#include "device/device.hpp"

#include <deque>
#include <vector>

namespace gantry::device::cuda {

class FusedCopies {
  public:
    FusedCopies(Driver& driver, const Context& context, bool kernels, bool flags);
    ~FusedCopies();
    FusedCopies(const FusedCopies&) = delete;
    FusedCopies& operator=(const FusedCopies&) = delete;

    bool pending() const { return unfinished_ > 0 || !waiting_.empty(); }
    // False when the context was found dead before anything was started: `done` is untouched.
    bool start(const Copy& copy, Completion& done);
    // Completes what has ended and starts what waited; returns how many ended.
    int progress();
    bool lost() const { return lost_; }
    void close();
    void abandon(CUresult why);

  private:
    struct Item {
        Copy copy;
        Completion* done;
    };
    enum class Seen : std::uint8_t { flags, query };

    CUresult start_waiting();
    bool launch();
    CUresult copy_one_by_one();
    bool record();
    void finish(std::size_t index, Status status);
    void fail_waiting(const Status& why);
    int look();
    int ask();
    bool prepare_kernel();

    Driver& driver_;
    Context context_;
    bool kernels_;
    const bool copies_by_flag_;  // GANTRY_FLAGS; kernels raise theirs always
    Flags flags_;
    CUstream stream_ = nullptr;
    CUevent behind_ = nullptr;  // recorded behind copies that are asked about
    CUmodule module_ = nullptr;
    CUfunction kernel_ = nullptr;
    std::uint32_t sequence_ = 0;
    std::vector<Item> flying_;  // of the launch (or copies) in the stream; done == nullptr: ended
    std::size_t first_ = 0;     // the first of them that has not ended
    std::size_t unfinished_ = 0;
    unsigned parts_ = 1;     // blocks, and flags, of each
    bool one_flag_ = false;  // a single flag after all of them
    Seen seen_ = Seen::flags;
    bool recorded_ = false;  // behind_ is, for what flies now
    Nanoseconds next_query_ = 0;
    unsigned looks_ = 0;
    std::deque<Item> waiting_;
    bool lost_ = false;
};

}  // namespace gantry::device::cuda
