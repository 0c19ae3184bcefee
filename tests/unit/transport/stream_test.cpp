// SPDX-License-Identifier: BSD-3-Clause
//
// Streams over the loopback: transfers of every size in order, places that are not there, either
// end gone in the middle.
#include "transport/ucx/frame.hpp"
#include "transport/ucx/stream.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

namespace gantry::transport::ucx {
namespace {

constexpr std::uint64_t kGreeting = 0x1234;
constexpr Bytes kLargestFrame = 64 * kKiB;

class Places : public StreamSink {
  public:
    std::byte* place(const StreamHead& head) override {
        const auto found = expected.find(head.number);
        return found == expected.end() ? nullptr : found->second;
    }
    void arrived(const StreamHead& head, bool dropped) override {
        (dropped ? thrown_away : whole).push_back(head.number);
    }
    void frame(std::span<const std::byte> bytes) override {
        frames.emplace_back(bytes.begin(), bytes.end());
    }
    std::map<std::uint64_t, std::byte*> expected;
    std::vector<std::uint64_t> whole, thrown_away;
    std::vector<std::vector<std::byte>> frames;
};

class StreamTest : public ::testing::Test {
  protected:
    void SetUp() override {
        Result<Listener> opened = Listener::open();
        ASSERT_TRUE(opened.ok()) << opened.status().text();
        door.emplace(std::move(*opened));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = door->port();
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        Result<OutStream> connected =
            OutStream::connect(address, std::as_bytes(std::span(&kGreeting, 1)), 10 * kSecond);
        ASSERT_TRUE(connected.ok()) << connected.status().text();
        out = std::move(*connected);
        Socket socket;
        for (int i = 0; i < 100000 && !socket.open(); ++i) {
            EXPECT_TRUE(out.progress().ok());
            socket = door->accept();
        }
        ASSERT_TRUE(socket.open());
        in.emplace(std::move(socket), kLargestFrame);
    }
    void greet() {
        std::uint64_t greeting = 0;
        bool whole = false;
        for (int i = 0; i < 100000 && !whole; ++i) {
            EXPECT_TRUE(out.progress().ok());
            Result<bool> read = in->read_greeting(std::as_writable_bytes(std::span(&greeting, 1)));
            ASSERT_TRUE(read.ok());
            whole = *read;
        }
        ASSERT_TRUE(whole);
        EXPECT_EQ(greeting, kGreeting);
    }
    void push(std::uint64_t number, const std::vector<std::byte>& data) {
        out.push(
            {kFrameMagic, static_cast<std::uint32_t>(Carried::exposure), number, 0, 0, data.size()},
            data.data(), [this](Status status) { left.push_back(std::move(status)); });
    }
    static std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
        std::vector<std::byte> data(bytes);
        for (std::size_t i = 0; i < bytes; ++i)
            data[i] = static_cast<std::byte>(i * 31 + i / 256 + seed);
        return data;
    }

    std::optional<Listener> door;
    OutStream out;
    std::optional<InStream> in;
    Places places;
    std::vector<Status> left;
};

TEST_F(StreamTest, CarriesTransfersOfEverySizeInOrderToTheirPlaces) {
    greet();
    const std::size_t sizes[] = {1, 0, 7, 4096, 3 * kMiB + 1, 65536, 12 * kMiB};
    std::vector<std::vector<std::byte>> sent, got;
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
        sent.push_back(pattern(sizes[i], static_cast<unsigned>(i)));
        got.emplace_back(sizes[i] + 1);
        places.expected[i] = got.back().data();
    }
    for (std::size_t i = 0; i < sent.size(); ++i)
        push(i, sent[i]);
    for (int turn = 0; turn < 1000000 && places.whole.size() < sent.size(); ++turn) {
        ASSERT_TRUE(out.progress().ok());
        ASSERT_TRUE(in->progress(places).ok());
    }
    ASSERT_EQ(places.whole.size(), sent.size());
    EXPECT_TRUE(std::ranges::is_sorted(places.whole));
    EXPECT_EQ(left.size(), sent.size());
    EXPECT_TRUE(out.idle());
    for (std::size_t i = 0; i < sent.size(); ++i) {
        EXPECT_EQ(got[i].back(), std::byte{}) << "behind transfer " << i;
        got[i].pop_back();
        EXPECT_TRUE(got[i] == sent[i]) << i;
    }
}

TEST_F(StreamTest, AFrameBehindATransferIsHandedOnBeforeTheNextTransferIsReceived) {
    greet();
    const std::vector<std::byte> small = pattern(100, 1), large = pattern(32 * kKiB, 2),
                                 frame = pattern(64, 3);
    std::vector<std::byte> first(small.size()), second(large.size());
    places.expected = {{0, first.data()}, {1, second.data()}};
    push(0, small);
    for (int i = 0; i < 2; ++i)  // the second lies in the buffer with the first
        out.push_rest(
            {kFrameMagic, static_cast<std::uint32_t>(Carried::frame), 0, 0, 0, frame.size()},
            frame.data(), 0, [](const Status&) {});
    push(1, large);
    for (int turn = 0; turn < 100000 && !out.idle(); ++turn)
        ASSERT_TRUE(out.progress().ok());
    for (int turn = 0; turn < 1000000 && places.frames.empty(); ++turn)
        ASSERT_TRUE(in->progress(places).ok());
    EXPECT_EQ(places.frames.size(), 2u);
    EXPECT_EQ(places.whole, std::vector<std::uint64_t>{0});
    for (int turn = 0; turn < 1000000 && places.whole.size() < 2; ++turn)
        ASSERT_TRUE(in->progress(places).ok());
    EXPECT_TRUE(second == large);
}

// It tells of the transfer. (A turn moves 1 MiB.)
TEST_F(StreamTest, AFrameLeavesInTheSameTurnAsTheLargeTransferBeforeIt) {
    greet();
    const std::vector<std::byte> large = pattern(kMiB, 1), frame = pattern(64, 3);
    std::vector<std::byte> first(large.size()), second(large.size());
    places.expected = {{0, first.data()}, {1, second.data()}};
    push(0, large);
    std::size_t frames_left = 0;
    out.push_rest({kFrameMagic, static_cast<std::uint32_t>(Carried::frame), 0, 0, 0, frame.size()},
                  frame.data(), 0, [&](const Status&) { ++frames_left; });
    push(1, large);
    for (int turn = 0; turn < 100000 && left.empty(); ++turn) {
        ASSERT_TRUE(out.progress().ok());
        if (left.empty()) {
            ASSERT_TRUE(in->progress(places).ok());
        }
    }
    EXPECT_EQ(left.size(), 1u);
    EXPECT_EQ(frames_left, 1u);
    for (int turn = 0; turn < 1000000 && places.whole.size() < 2; ++turn) {
        ASSERT_TRUE(out.progress().ok());
        ASSERT_TRUE(in->progress(places).ok());
    }
    EXPECT_EQ(places.frames, std::vector<std::vector<std::byte>>{frame});
    EXPECT_TRUE(first == large && second == large);
}

TEST_F(StreamTest, CarriesFramesOfEverySizeBetweenTransfers) {
    greet();
    const std::size_t sizes[] = {8, 64, 8000, 8192, kLargestFrame, 16};
    const std::vector<std::byte> large = pattern(3 * kMiB + 5, 9);
    std::vector<std::vector<std::byte>> sent, sinks(std::size(sizes), large);
    for (std::size_t i = 0; i < std::size(sizes); ++i)
        sent.push_back(pattern(sizes[i], static_cast<unsigned>(i)));
    for (std::size_t i = 0; i < sent.size(); ++i) {
        std::ranges::fill(sinks[i], std::byte{});
        places.expected[i] = sinks[i].data();
        out.push_rest({kFrameMagic, static_cast<std::uint32_t>(Carried::frame), 0, 0, 0, sizes[i]},
                      sent[i].data(), 0, [](const Status&) {});
        push(i, large);
    }
    for (int turn = 0; turn < 1000000 && places.whole.size() < sent.size(); ++turn) {
        ASSERT_TRUE(out.progress().ok());
        ASSERT_TRUE(in->progress(places).ok());
    }
    EXPECT_TRUE(places.frames == sent);
    for (const std::vector<std::byte>& sink : sinks)
        EXPECT_TRUE(sink == large);
    EXPECT_TRUE(in->between_transfers());
}

TEST_F(StreamTest, AFrameLargerThanAnyIsDamage) {
    for (const std::uint64_t said : {std::uint64_t{2 * kLargestFrame}, ~std::uint64_t{0} - 8}) {
        SetUp();
        greet();
        const StreamHead head{kFrameMagic, static_cast<std::uint32_t>(Carried::frame), 0, 0, 0,
                              said};
        ASSERT_TRUE(out.send_now(head, {}).ok());
        bool refused = false;
        for (int turn = 0; turn < 1000000 && !refused; ++turn)
            refused = !in->progress(places).ok();
        EXPECT_TRUE(refused) << said;
        EXPECT_TRUE(places.frames.empty());
    }
}

TEST_F(StreamTest, DropsWhatHasNoPlaceAndGoesOn) {
    greet();
    const std::vector<std::byte> lost = pattern(kMiB, 1), kept = pattern(1000, 2);
    std::vector<std::byte> sink(kept.size());
    places.expected[2] = sink.data();
    push(1, lost);
    push(2, kept);
    for (int turn = 0; turn < 1000000 && places.whole.empty(); ++turn) {
        ASSERT_TRUE(out.progress().ok());
        ASSERT_TRUE(in->progress(places).ok());
    }
    EXPECT_EQ(places.thrown_away, std::vector<std::uint64_t>{1});
    EXPECT_EQ(places.whole, std::vector<std::uint64_t>{2});
    EXPECT_TRUE(sink == kept);
}

TEST_F(StreamTest, AReceiverThatClosesEndsWhatIsQueuedWithAnError) {
    greet();
    const std::vector<std::byte> data = pattern(64 * kMiB, 3);
    push(1, data);
    push(2, data);
    ASSERT_TRUE(out.progress().ok());
    in->close();
    bool broken = false;
    for (int turn = 0; turn < 1000000 && !broken; ++turn)
        broken = !out.progress().ok();
    EXPECT_TRUE(broken);
    ASSERT_EQ(left.size(), 2u);
    EXPECT_FALSE(left[0].ok());
    EXPECT_FALSE(left[1].ok());
    EXPECT_FALSE(out.open());
}

TEST_F(StreamTest, ASenderThatClosesInTheMiddleIsAnErrorOfTheReceiver) {
    greet();
    const std::vector<std::byte> data = pattern(64 * kMiB, 4);
    std::vector<std::byte> sink(data.size());
    places.expected[1] = sink.data();
    push(1, data);
    ASSERT_TRUE(out.progress().ok());
    out.close(failure(MPI_ERR_OTHER, "the end"));
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].error_class(), MPI_ERR_OTHER);
    bool broken = false;
    for (int turn = 0; turn < 1000000 && !broken; ++turn)
        broken = !in->progress(places).ok();
    EXPECT_TRUE(broken);
    EXPECT_TRUE(places.whole.empty());
}

TEST(Stream, ToADoorThatIsShutIsRefused) {
    Result<Listener> door = Listener::open();
    ASSERT_TRUE(door.ok());
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = door->port();
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    { const Listener shut = std::move(*door); }
    Result<OutStream> stream =
        OutStream::connect(address, std::as_bytes(std::span(&kGreeting, 1)), kSecond);
    bool refused = !stream.ok();
    for (int turn = 0; turn < 1000000 && !refused; ++turn)
        refused = !stream->progress().ok();
    EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace gantry::transport::ucx
