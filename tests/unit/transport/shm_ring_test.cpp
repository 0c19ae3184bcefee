// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/ring.hpp"

#include "base/segment.hpp"
#include "unit/transport/shm_world.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <thread>
#include <vector>

namespace gantry::transport::shm {
namespace {

constexpr Bytes kRing = 4096;

class Ring : public testing::Test {
  protected:
    void SetUp() override {
        segment = std::move(Segment::create("test-ring", kRing).value());
        ASSERT_TRUE(segment.reserve(0, kRing).ok());
        memory = std::move(segment.map_twice(0, kRing).value());
        writer = RingWriter(memory.address(), kRing, consumed);
        reader = RingReader(memory.address(), kRing, consumed);
    }
    bool write(MessageKind kind, std::string_view header, std::string_view payload) {
        return writer.write(kind, std::as_bytes(std::span(header)),
                            std::as_bytes(std::span(payload)));
    }
    std::vector<Arrived> read(int most = 1000) {
        std::vector<Arrived> got;
        reader.read(most, [&](MessageKind kind, ConstSpan header, ConstSpan payload) {
            got.push_back({0, kind, Notebook::text(header), Notebook::text(payload)});
        });
        return got;
    }
    Segment segment;
    SegmentMapping memory;
    ConsumedWord consumed;
    RingWriter writer;
    RingReader reader;
};

TEST_F(Ring, ASmallMessageTakesOneLine) {
    EXPECT_EQ(record::lines(24, 32), 1u);
    EXPECT_EQ(record::lines(24, 33), 2u);
    EXPECT_EQ(record::lines(0, 0), 1u);
}

TEST_F(Ring, KeepsOrderKindHeaderAndPayload) {
    EXPECT_TRUE(read().empty());
    ASSERT_TRUE(write(1, "a", "first"));
    ASSERT_TRUE(write(2, "", ""));
    ASSERT_TRUE(write(3, std::string(256, 'h'), std::string(700, 'p')));
    const std::vector<Arrived> got = read();
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0].header + got[0].payload, "afirst");
    EXPECT_EQ(got[1].kind, 2);
    EXPECT_EQ(got[2].header, std::string(256, 'h'));
    EXPECT_EQ(got[2].payload, std::string(700, 'p'));
}

TEST_F(Ring, RefusesWhatDoesNotFitAndTakesItOnceTheReaderHasMadeRoom) {
    int accepted = 0;
    while (write(7, "", std::to_string(accepted)))
        ++accepted;
    EXPECT_EQ(accepted,
              static_cast<int>(kRing / kLine) - 1);  // one line is the one that the reader polls
    EXPECT_EQ(read(1).at(0).payload, "0");
    EXPECT_TRUE(write(7, "", "late"));
    EXPECT_FALSE(write(7, "", "too late"));
    EXPECT_EQ(read().back().payload, "late");
}

TEST_F(Ring, TheLargestPayloadFitsFromEveryPosition) {
    const std::string largest = pattern(largest_payload(kRing), 1);
    const std::string header(kMaxHeader, 'h');
    for (int i = 0; i < 200; ++i) {
        ASSERT_TRUE(write(1, header, largest)) << i;
        const std::vector<Arrived> got = read();
        ASSERT_EQ(got.size(), 1u) << i;
        ASSERT_EQ(got[0].payload, largest) << i;
        ASSERT_TRUE(write(2, "", "shift"));
        ASSERT_EQ(read().size(), 1u);
    }
}

TEST_F(Ring, BytesOfOldMessagesNeverLookLikeANewOne) {
    const std::string ones(1000, '\xff');
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(write(1, "", ones));
        ASSERT_EQ(read().size(), 1u);
        ASSERT_TRUE(read().empty());
        ASSERT_TRUE(write(1, "", "x"));
        ASSERT_EQ(read().size(), 1u);
        ASSERT_TRUE(read().empty());
    }
}

TEST_F(Ring, CarriesRandomSizesBetweenTwoThreads) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    constexpr int kMessages = 20000;
    const auto message = [&](int i) {
        std::mt19937_64 random(seed + static_cast<std::uint64_t>(i));
        const Bytes bytes = random() % 3 == 0 ? random() % largest_payload(kRing) : random() % 80;
        return pattern(bytes, seed + static_cast<std::uint64_t>(i));
    };
    std::thread sending([&] {
        for (int i = 0; i < kMessages;)
            if (write(static_cast<MessageKind>(i), "", message(i)))
                ++i;
            else
                std::this_thread::yield();
    });
    int next = 0;
    int wrong = 0;
    while (next < kMessages) {
        const int taken = reader.read(8, [&](MessageKind kind, ConstSpan, ConstSpan payload) {
            wrong +=
                kind != static_cast<MessageKind>(next) || Notebook::text(payload) != message(next);
            ++next;
        });
        if (taken == 0) std::this_thread::yield();
    }
    sending.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(writer.is_drained());
}

}  // namespace
}  // namespace gantry::transport::shm
