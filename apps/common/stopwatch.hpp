// SPDX-License-Identifier: BSD-3-Clause
//
// Where the time of a step goes. Every moment between start() and stop() belongs to one part: lap()
// gives what went by since the last call to the part that it names, so the parts add up to the whole.
// On a GPU a part has the time in which the host waited for it; compute that ran beside an exchange is
// in `network`.
#pragma once

#include <chrono>

namespace gantry::apps {

enum class Part { compute, pack, to_host, network, to_device, unpack };
inline constexpr int kParts = 6;
inline constexpr const char* kPartNames[kParts] = {"compute", "pack",   "to host",
                                                   "network", "to GPU", "unpack"};

class Stopwatch {
  public:
    using Clock = std::chrono::steady_clock;
    void start() { last_ = Clock::now(); }
    void lap(Part part) {
        const Clock::time_point now = Clock::now();
        seconds_[static_cast<int>(part)] += std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }
    double seconds(Part part) const { return seconds_[static_cast<int>(part)]; }
    double total() const {
        double sum = 0;
        for (const double part : seconds_)
            sum += part;
        return sum;
    }
    void clear() {
        for (double& part : seconds_)
            part = 0;
    }

  private:
    Clock::time_point last_;
    double seconds_[kParts] = {};
};

}  // namespace gantry::apps
