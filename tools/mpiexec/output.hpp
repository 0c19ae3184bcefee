// SPDX-License-Identifier: BSD-3-Clause
//
// Output of many ranks into one stream, by whole lines. A Sink is where mpiexec itself writes (its
// standard output or error); it never blocks the loop: what the terminal or pipe does not take
// stays queued, and while much is queued no rank is read. A Forwarder turns what one rank writes
// into lines of a Sink.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gantry::mpiexec {

class Sink {
  public:
    explicit Sink(int descriptor);
    int descriptor() const { return descriptor_; }
    void add(std::string_view text) {
        if (!broken_) queued_.append(text);
    }
    bool wants_to_write() const { return !queued_.empty(); }
    bool is_full() const { return queued_.size() > kMostQueued; }
    // The reader is gone (`mpiexec ... | head`): nothing can be written any more.
    bool is_broken() const { return broken_; }
    // Why nothing can be written any more, although somebody reads: a full disk, say. 0: no reason.
    int error() const { return error_; }
    // To be called when the descriptor is ready; writes no more than it takes at once.
    void write_some();
    // Waits until everything is out (the end of mpiexec).
    void flush();

  private:
    static constexpr std::size_t kMostQueued = 1 << 20;
    int descriptor_;
    std::size_t piece_;  // what one write may take without blocking
    std::string queued_;
    bool broken_ = false;
    int error_ = 0;
};

class Forwarder {
  public:
    Forwarder(int source, Sink& sink, std::string prefix);
    Forwarder(Forwarder&& other) noexcept;
    Forwarder& operator=(Forwarder&&) = delete;
    ~Forwarder();

    int source() const { return source_; }
    bool is_open() const { return source_ >= 0; }
    Sink& sink() const { return *sink_; }
    bool has_partial_line() const { return !line_.empty(); }
    // Takes what has arrived; at the end of the stream passes on the unfinished line and closes.
    void read_some();
    // Passes on a line that is not finished, such as a prompt.
    void flush_partial_line();
    void close_source();

  private:
    int source_;
    Sink* sink_;
    std::string prefix_;
    std::string line_;
};

// The file that a pattern names: %r the rank, %g the number of its program, %h this machine.
std::string file_of_pattern(const std::string& pattern, int rank, std::size_t program);

}  // namespace gantry::mpiexec
