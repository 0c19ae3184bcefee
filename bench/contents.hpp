// SPDX-License-Identifier: BSD-3-Clause
//
// What one rank's two buffers hold in one sample: written before, checked after, both outside of
// any time.
#pragma once

#include "buffer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gantry::bench {

struct Plan {
    Bytes bytes = 0;
    int messages = 1;  // of one sample, each with a place and a content of its own
    int samples = 1;
    bool both_ways = false;  // the second rank of a pair sends too
};

class Contents {
  public:
    // References outlive it.
    Contents(const Options& options, const Plan& plan);

    const Buffer& outgoing() const { return outgoing_; }
    const Buffer& incoming() const { return incoming_; }
    bool sends() const;
    bool receives() const;

    // New contents for the next sample, where data is checked at all.
    void renew();
    // Ends the job when a message did not arrive as it was sent; `way` is who brought it.
    void check(const std::string& way);

  private:
    // Between a message as a run of bytes and its rows in `scratch_`. What lies between rows that come
    // must stay as it was: the first byte that did not.
    void spread(int message);
    std::optional<Bytes> collect(int message);
    std::byte* place(int message) const {
        return scratch_.data() + outgoing_.stride() * static_cast<Bytes>(message);
    }
    const Options& options_;
    const Plan& plan_;
    Buffer outgoing_, incoming_;
    HostMemory scratch_;
    std::vector<std::byte> packed_;  // of rows
    std::uint64_t sample_ = 0;
};

}  // namespace gantry::bench
