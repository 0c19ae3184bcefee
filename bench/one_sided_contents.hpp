// SPDX-License-Identifier: BSD-3-Clause
//
// What the buffers of one-sided operations hold in one sample: written before, checked behind it,
// outside of any time. Put and get move a pattern; accumulate adds doubles without a fraction, so that
// sums are exact; fetch_op and cas have one item a message.
#pragma once

#include "one_sided_way.hpp"

#include <cstdint>

namespace gantry::bench {

class OneSidedContents {
  public:
    // References outlive it.
    OneSidedContents(const Options& options, const Plan& plan);
    OriginBuffers origin() const { return {operand_, result_}; }

    // New contents for the next sample; behind it both ranks have to meet.
    void renew(OneSidedWay& way);
    // Ends the job when what so many rounds of all operations must give is not there.
    void check(OneSidedWay& way, int rounds);

  private:
    std::byte* place(const Buffer& buffer, int message) const {
        return scratch_.data() + buffer.stride() * static_cast<Bytes>(message);
    }
    template <class Item>
    Item* items(const Buffer& buffer, int message) const {
        return reinterpret_cast<Item*>(place(buffer, message));
    }
    void fill_operand();
    void fill_exposed();
    void check_pattern(const OneSidedWay& way, const Buffer& as, int message) const;
    void check_sums(const OneSidedWay& way, int message, int rounds) const;
    void check_item(const OneSidedWay& way, int message, long is, long wanted,
                    const char* what) const;
    [[noreturn]] void wrong(const OneSidedWay& way, int message, const std::string& what) const;

    const Options& options_;
    const Plan& plan_;
    Buffer operand_, result_;
    HostMemory scratch_;
    std::uint64_t sample_ = 0;
};

}  // namespace gantry::bench
