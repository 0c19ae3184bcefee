// SPDX-License-Identifier: BSD-3-Clause
#include "base/streaming_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace gantry {
namespace {

TEST(StreamingCopy, MovesEverySizeAtEveryAlignmentAndNothingElse) {
    std::vector<std::byte> from(700), to;
    for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = static_cast<std::byte>(i * 7 + 1);
    for (std::size_t start = 0; start < 67; start += 3)
        for (std::size_t bytes : {0, 1, 15, 63, 64, 65, 127, 128, 200, 513}) {
            to.assign(700, std::byte{0});
            streaming_copy(to.data() + start, from.data() + 5, bytes);
            std::vector<std::byte> expected(700, std::byte{0});
            std::copy_n(from.begin() + 5, bytes,
                        expected.begin() + static_cast<std::ptrdiff_t>(start));
            ASSERT_EQ(to, expected) << start << " " << bytes;
        }
}

}  // namespace
}  // namespace gantry
