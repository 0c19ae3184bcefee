// SPDX-License-Identifier: BSD-3-Clause
//
// Current: makes a context current on this thread for as long as the object lives, and lets captures of the
// program's streams pass unharmed (Relaxed). It is pushed and popped, never set, so the program's own current
// context is what it was. Must not live across a co_await.
#pragma once

#include "device/cuda/driver.hpp"

#include <cstdint>
#include <optional>

namespace gantry::device::cuda {

// A context and its identity: after a reset the same handle names another life of the primary
// context.
struct Context {
    CUcontext handle = nullptr;
    unsigned long long id = 0;  // 0: the driver cannot tell
    int gpu = -1;
    bool operator==(const Context&) const = default;
};

// While it lives, what this thread calls neither joins nor breaks a capture that the program runs, on this
// thread or another one: in any other mode the driver refuses calls that set up or wait, and the capture is lost.
class Relaxed {
  public:
    explicit Relaxed(Driver& driver);
    ~Relaxed();
    Relaxed(const Relaxed&) = delete;
    Relaxed& operator=(const Relaxed&) = delete;

  private:
    Driver& driver_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class Current {
  public:
    Current(Driver& driver, CUcontext context);
    // Also checks that the handle still names the same context; result() is
    // CUDA_ERROR_CONTEXT_IS_DESTROYED if it does not.
    Current(Driver& driver, const Context& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

    CUresult result() const { return result_; }
    bool ok() const { return result_ == CUDA_SUCCESS; }

  private:
    Driver& driver_;
    CUresult result_;
    bool pushed_;
    std::optional<Relaxed> relaxed_;
};

// Keeps a context current on this thread: each Current of it inside costs nothing.
class KeptCurrent {
  public:
    KeptCurrent(Driver& driver, const Context& context);
    ~KeptCurrent();
    KeptCurrent(const KeptCurrent&) = delete;
    KeptCurrent& operator=(const KeptCurrent&) = delete;

  private:
    Driver& driver_;
    const Current current_;
    const Driver::Kept before_;
};

// A stream of ours in the current context: non-blocking, and with the highest priority, so that where
// the program's own kernels fill the GPU, a kernel of ours starts as soon as some of their blocks
// have left.
CUresult create_stream(Driver& driver, CUstream& stream);

// 0 when the driver cannot tell or the context is gone.
unsigned long long context_id(Driver& driver, CUcontext context);

}  // namespace gantry::device::cuda
