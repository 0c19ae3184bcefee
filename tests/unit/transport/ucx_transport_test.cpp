// SPDX-License-Identifier: BSD-3-Clause
//
// The network between ranks of one process: messages, packing, puts, the end and the loss of a
// peer. Real UCX over TCP of this machine; not run, and said so, where there is no UCX.
#include "ucx_world.hpp"

#include "transport/ucx/bulk.hpp"
#include "transport/ucx/frame.hpp"
#include "transport/wire_version.hpp"

#include <arpa/inet.h>

#include <numeric>

namespace gantry::transport::ucx {
namespace {

TEST_F(UcxTest, CarriesHeaderAndPayloadInOrderBothWays) {
    start(2);
    for (int i = 0; i < 100; ++i) {
        const std::string text = "message " + std::to_string(i);
        ASSERT_TRUE(transport(0).send(1, 7, bytes(text), bytes(std::string(i, 'a'))).ok());
        ASSERT_TRUE(transport(1).send(0, 9, bytes(text), {}).ok());
    }
    ASSERT_TRUE(until(
        [&] { return notebook(0).messages.size() == 100 && notebook(1).messages.size() == 100; }));
    for (std::size_t i = 0; i < 100; ++i) {
        const shm::Arrived& there = notebook(1).messages[i];
        EXPECT_EQ(there.peer, 0);
        EXPECT_EQ(there.kind, 7);
        EXPECT_EQ(there.header, "message " + std::to_string(i));
        EXPECT_EQ(there.payload, std::string(i, 'a'));
        EXPECT_EQ(notebook(0).messages[i].header, there.header);
    }
}

TEST_F(UcxTest, CarriesTheLargestMessageItPromises) {
    start(2);
    std::string payload(transport(0).facts(1).eager_max, ' ');
    std::iota(payload.begin(), payload.end(), '\0');
    const std::string header(kMaxHeader, 'h');
    for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(transport(0).send(1, 1, bytes(header), bytes(payload)).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 20; }));
    for (const shm::Arrived& message : notebook(1).messages) {
        EXPECT_EQ(message.header, header);
        EXPECT_TRUE(message.payload == payload);
    }
}

TEST_F(UcxTest, AMessageAloneNeedsNoProgressOfItsSender) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    turn();
    ASSERT_TRUE(transport(0).send(1, 2, bytes("alone"), {}).ok());
    const SteadyClock clock;
    const Nanoseconds end = clock.now() + 10 * kSecond;
    while (notebook(1).messages.size() < 2 && clock.now() < end)
        transport(1).progress();
    EXPECT_EQ(notebook(1).messages.size(), 2u);
}

TEST_F(UcxTest, MessagesThatWaitForCompanyLeaveWithFlush) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    turn();
    for (int i = 0; i < 50; ++i)
        ASSERT_TRUE(transport(0).send(1, 2, bytes("many"), {}).ok());
    transport(0).flush();
    const SteadyClock clock;
    const Nanoseconds end = clock.now() + 10 * kSecond;
    while (notebook(1).messages.size() < 51 && clock.now() < end)
        transport(1).progress();
    EXPECT_EQ(notebook(1).messages.size(), 51u);
}

TEST_F(UcxTest, AWindowOfSmallMessagesLeavesInFiveFramesAndArrivesWithoutTheSender) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    const std::string envelope(24, 'e'), payload(8, 'p');
    for (int window = 1; window <= 100; ++window) {
        turn();
        const std::uint64_t before = transport(0).frames_posted();
        for (int i = 0; i < 64; ++i)
            ASSERT_TRUE(transport(0).send(1, 2, bytes(envelope), bytes(payload)).ok());
        transport(0).flush();  // as every blocking call of MPI does at its end
        EXPECT_EQ(transport(0).frames_posted() - before, 5u) << "four alone, sixty together";
        // No turn of the sender any more. UCX hands over what the socket gives, at least a frame at
        // a time; empty looks are the kernel's time, and bounded by the clock alone.
        const std::size_t all = 1 + 64 * static_cast<std::size_t>(window);
        const SteadyClock clock;
        const Nanoseconds end = clock.now() + 10 * kSecond;
        int turns_with_messages = 0;
        while (notebook(1).messages.size() < all && clock.now() < end)
            if (transport(1).progress() > 0) ++turns_with_messages;
        ASSERT_EQ(notebook(1).messages.size(), all);
        EXPECT_LE(turns_with_messages, 10);
    }
}

TEST_F(UcxTest, AMessageThatMayWaitForTheNextTravelsWithIt) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    turn();
    const std::uint64_t before = transport(0).frames_posted();
    ASSERT_TRUE(transport(0).send_with_next(1, 2, bytes("first"), {}).ok());
    turn();
    EXPECT_EQ(transport(0).frames_posted(), before);
    ASSERT_TRUE(transport(0).send(1, 3, bytes("second"), bytes("payload")).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 3; }));
    EXPECT_EQ(transport(0).frames_posted() - before, 1u);
    EXPECT_EQ(notebook(1).messages[1].header, "first");
    EXPECT_EQ(notebook(1).messages[2].header, "second");
}

TEST_F(UcxTest, MessagesThatAFullSocketHoldsBackShareFrames) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    const std::uint64_t before = transport(0).frames_posted();
    const std::string envelope(24, 'e'), payload(8, 'p');
    constexpr std::size_t kMessages = 200'000;  // 8 MB as records of 40 bytes
    for (std::size_t i = 0; i < kMessages; ++i)
        ASSERT_TRUE(transport(0).send(1, 2, bytes(envelope), bytes(payload)).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1 + kMessages; }));
    // 199 records fill a frame of 8000 bytes; the few that left alone, and what each turn flushed.
    const std::uint64_t frames = transport(0).frames_posted() - before;
    EXPECT_GE(frames, kMessages / 199);
    EXPECT_LE(frames, kMessages / 199 + 10);
}

TEST_F(UcxTest, APutIsAtThePeerWhenItIsDone) {
    start(2);
    for (const Bytes size : {Bytes{1}, Bytes{4096}, kMiB + 3}) {
        std::vector<std::byte> source(size, std::byte{0x5a}), sink(size + 16);
        const Result<Region> region = transport(1).register_memory(extent(sink));
        ASSERT_TRUE(region.ok()) << region.status().text();
        const RemoteKey key = transport(1).key(region.value());
        Completion done(ranks[0]->executor);
        ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
        transport(0).put(1, 0, source.data(), size, {}, key, 8, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        EXPECT_EQ(sink[7], std::byte{0});
        EXPECT_TRUE(std::equal(source.begin(), source.end(), sink.begin() + 8));
        EXPECT_EQ(sink[8 + size], std::byte{0});
        transport(1).release_memory(region.value());
    }
}

TEST_F(UcxTest, ALargePutGoesStraightOnceTheSecondConnectionIsOpen) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    struct {
        std::vector<std::byte> source = std::vector<std::byte>(kMiB + 3, std::byte{0x5a});
        std::vector<std::byte> sink = std::vector<std::byte>(kMiB + 3);
    } put;
    const Result<Region> region = transport(1).register_memory({put.sink.data(), put.sink.size()});
    ASSERT_TRUE(region.ok()) << region.status().text();
    const RemoteKey key = transport(1).key(region.value());
    const auto put_once = [&](Bytes size) {
        std::fill(put.sink.begin(), put.sink.end(), std::byte{0});
        Completion done(ranks[0]->executor);
        transport(0).put(1, 0, put.source.data(), size, {}, key, put.sink.size() - size, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok()) << done.status().text();
        EXPECT_TRUE(std::equal(put.source.begin(), put.source.begin() + static_cast<long>(size),
                               put.sink.end() - static_cast<long>(size)));
    };
    put_once(kMiB + 3);
    EXPECT_EQ(transport(0).zero_copy_puts(), 0u) << "the first one finds no connection";
    ASSERT_TRUE(until([&] {
        put_once(kMiB + 3);
        return transport(0).zero_copy_puts() > 0;
    }));
    const std::uint64_t before = transport(0).zero_copy_puts(),
                        frames = transport(0).frames_posted();
    put_once(transport(0).facts(1).rdma_from);
    EXPECT_EQ(transport(0).zero_copy_puts(), before + 1);
    EXPECT_EQ(transport(0).frames_posted(), frames) << "the receiver watches, and is told nothing";
    put_once(transport(0).facts(1).rdma_from - 1);
    EXPECT_EQ(transport(0).zero_copy_puts(), before + 1) << "small ones go in pieces";
    transport(1).release_memory(region.value());
    Completion nowhere(ranks[0]->executor);
    transport(0).put(1, 0, put.source.data(), kMiB, {}, key, 0, nowhere);
    ASSERT_TRUE(until([&] { return nowhere.done(); }));
    EXPECT_FALSE(nowhere.status().ok()) << "a put into memory that is not there any more";
}

// The message travels behind the bytes: the peer has both before its answer is back.
TEST_F(UcxTest, APutThatTellsIsKnownToThePeerBeforeItIsAnswered) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    std::vector<std::byte> source(kMiB + 3, std::byte{0x5a}), sink(kMiB + 3);
    const Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok()) << region.status().text();
    const RemoteKey key = transport(1).key(region.value());
    const auto put = [&](Completion& done) {
        return transport(0).put_and_tell(1, 0, source.data(), source.size(), {}, key, 0, 7,
                                         bytes("it is there"), done);
    };
    Completion first(ranks[0]->executor);
    ASSERT_TRUE(until([&] { return put(first); })) << "once the second connection is open";
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 2; }));
    EXPECT_EQ(notebook(1).messages[1].header, "it is there");
    EXPECT_TRUE(sink == source);
    EXPECT_FALSE(first.done());
    ASSERT_TRUE(until([&] { return first.done(); }));
    EXPECT_TRUE(first.status().ok()) << first.status().text();

    // Nobody is told of bytes that had no place.
    transport(1).release_memory(region.value());
    Completion dropped(ranks[0]->executor);
    RemoteKey nowhere = key;
    nowhere.bytes[8] ^= std::byte{0x40};  // the region's number
    ASSERT_TRUE(transport(0).put_and_tell(1, 0, source.data(), source.size(), {}, nowhere, 0, 7,
                                          bytes("it is not"), dropped));
    ASSERT_TRUE(until([&] { return dropped.done(); }));
    EXPECT_FALSE(dropped.status().ok());
    ASSERT_TRUE(transport(0).send(1, 8, bytes("last"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 3; }));
    EXPECT_EQ(notebook(1).messages[2].header, "last");
}

TEST_F(UcxTest, WithoutASecondConnectionLargePutsGoInPieces) {
    config.tcp_zero_copy = 0;
    start(2);
    EXPECT_EQ(transport(0).facts(1).rdma_from, 0u);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    std::vector<std::byte> source(kMiB, std::byte{1}), sink(kMiB);
    const Result<Region> region = transport(1).register_memory({sink.data(), sink.size()});
    ASSERT_TRUE(region.ok());
    for (int i = 0; i < 20; ++i) {
        Completion done(ranks[0]->executor);
        transport(0).put(1, 0, source.data(), kMiB, {}, transport(1).key(region.value()), 0, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok());
    }
    EXPECT_EQ(transport(0).zero_copy_puts(), 0u);
}

TEST_F(UcxTest, ADoorThatDoesNotOpenLeavesPutsInPieces) {
    const auto store = std::make_shared<Store>();
    for (int number = 0; number < 2; ++number) {
        ranks.push_back(std::make_unique<Rank>(number, 2, store, config));
        ASSERT_TRUE(ranks.back()->transport.publish(ranks.back()->job).ok());
    }
    // Somebody else's door: nobody of this job knows that cookie.
    std::string value = (*store)[{1, "ucx"}];
    value[16] = static_cast<char>(value[16] + 1);
    (*store)[{1, "ucx"}] = value;
    for (const auto& rank : ranks)
        ASSERT_TRUE(rank->transport.open(rank->job, rank->notebook).ok());
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    std::vector<std::byte> source(kMiB, std::byte{1}), sink(kMiB);
    const Result<Region> region = transport(1).register_memory({sink.data(), sink.size()});
    ASSERT_TRUE(region.ok());
    for (int i = 0; i < 20; ++i) {
        Completion done(ranks[0]->executor);
        transport(0).put(1, 0, source.data(), kMiB, {}, transport(1).key(region.value()), 0, done);
        ASSERT_TRUE(until([&] { return done.done(); }));
        EXPECT_TRUE(done.status().ok());
    }
    EXPECT_EQ(transport(0).zero_copy_puts(), 0u);
    EXPECT_TRUE(notebook(0).lost.empty() && notebook(1).lost.empty());
}

TEST(UcxBulk, TakesTheAddressOfANetworkThatBothAreInAndNeverALoopbackOfAnotherHost) {
    const auto at = [](const char* text) { return inet_addr(text); };
    const std::vector<Network> ours{{at("127.0.0.1"), at("255.0.0.0")},
                                    {at("10.1.2.3"), at("255.255.255.0")}};
    const auto chosen = [&](std::vector<in_addr_t> hosts, SameHost same) {
        const auto address = choose_address({htons(7), std::move(hosts)}, ours, same);
        return address ? address->sin_addr.s_addr : in_addr_t{0};
    };
    const in_addr_t loopback = at("127.0.0.1"), far = at("192.168.0.9"), near = at("10.1.2.99");
    EXPECT_EQ(chosen({loopback, far, near}, SameHost::no), near);
    EXPECT_EQ(chosen({loopback, far}, SameHost::no), far);
    EXPECT_EQ(chosen({loopback}, SameHost::no), 0u);
    EXPECT_EQ(chosen({loopback, far}, SameHost::yes), loopback);
    EXPECT_EQ(chosen({}, SameHost::yes), 0u);
    EXPECT_FALSE(choose_address({0, {near}}, ours, SameHost::no)) << "it does not listen";
}

TEST_F(UcxTest, ADamagedKeyIsAnErrorOfThePut) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("connect"), {}).ok());
    const std::byte source{};
    Completion done(ranks[0]->executor);
    transport(0).put(1, 0, &source, 1, {}, RemoteKey{}, 0, done);
    ASSERT_TRUE(done.done());
    EXPECT_EQ(done.status().error_class(), MPI_ERR_INTERN);
}

TEST_F(UcxTest, WhoLeavesInOrderIsNotLost) {
    start(2);
    ASSERT_TRUE(transport(0).send(1, 1, bytes("hello"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    leave(*ranks[0]);
    ranks[0].reset();
    for (int i = 0; i < 1000; ++i)
        turn();
    EXPECT_TRUE(notebook(1).lost.empty());
}

TEST_F(UcxTest, WhatWasSentBeforeTheEndStillArrives) {
    start(2);
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(transport(0).send(1, 1, bytes("hello"), bytes(std::string(100, 'x'))).ok());
    leave(*ranks[0]);
    EXPECT_TRUE(until([&] { return notebook(1).messages.size() == 1000; }));
}

TEST_F(UcxTest, WhoVanishesIsLostOnceAndItsPutsEndWithAnError) {
    start(2);
    std::vector<std::byte> source(64 * kMiB, std::byte{1}), sink(64 * kMiB);
    const Result<Region> region = transport(1).register_memory(extent(sink));
    ASSERT_TRUE(region.ok());
    const RemoteKey key = transport(1).key(region.value());
    ASSERT_TRUE(transport(0).send(1, 1, bytes("hello"), {}).ok());
    ASSERT_TRUE(until([&] { return notebook(1).messages.size() == 1; }));
    Completion done(ranks[0]->executor);
    transport(0).put(1, 0, source.data(), source.size(), {}, key, 0, done);
    ranks[1].reset();  // no goodbye
    ASSERT_TRUE(until([&] { return !notebook(0).lost.empty() && done.done(); }));
    EXPECT_FALSE(done.status().ok());
    for (int i = 0; i < 1000; ++i)
        turn();
    ASSERT_EQ(notebook(0).lost.size(), 1u);
    EXPECT_EQ(notebook(0).lost[0].first, 1);
    EXPECT_EQ(notebook(0).lost[0].second.error_class(), MPI_ERR_PROC_ABORTED);
    EXPECT_FALSE(transport(0).send(1, 1, bytes("anybody?"), {}).ok());
}

TEST_F(UcxTest, WhoVanishesWithAStraightPutUnderWayIsLostOnceOnEitherSide) {
    for (const int victim : {1, 0}) {
        start(2);
        const int survivor = 1 - victim;
        std::vector<std::byte> source(64 * kMiB, std::byte{1}), sink(64 * kMiB);
        const Result<Region> region = transport(1).register_memory({sink.data(), sink.size()});
        ASSERT_TRUE(region.ok());
        const RemoteKey key = transport(1).key(region.value());
        ASSERT_TRUE(transport(0).send(1, 1, bytes("hello"), {}).ok());
        ASSERT_TRUE(until([&] {
            Completion done(ranks[0]->executor);
            transport(0).put(1, 0, source.data(), kMiB, {}, key, 0, done);
            EXPECT_TRUE(until([&] { return done.done() && done.status().ok(); }));
            return transport(0).zero_copy_puts() > 0;
        }));
        {
            auto done = std::make_unique<Completion>(ranks[0]->executor);
            transport(0).put(1, 0, source.data(), source.size(), {}, key, 0, *done);
            for (int i = 0; i < 4; ++i)
                turn();
            ranks[static_cast<std::size_t>(victim)].reset();
            ASSERT_TRUE(until(
                [&] { return !notebook(survivor).lost.empty() && (victim == 0 || done->done()); }));
            if (victim == 1) {
                EXPECT_FALSE(done->status().ok());
            }
        }
        for (int i = 0; i < 1000; ++i)
            turn();
        ASSERT_EQ(notebook(survivor).lost.size(), 1u);
        EXPECT_EQ(notebook(survivor).lost[0].first, victim);
        leave(*ranks[static_cast<std::size_t>(survivor)]);
        ranks.clear();
    }
}

// A job of two whose other rank published the same, with one byte changed.
TEST_F(UcxTest, MixedVersionsOfGantryAreRefusedWithASentenceThatNamesBoth) {
    const auto store = std::make_shared<Store>();
    Rank here(0, 2, store, config);
    ASSERT_TRUE(here.transport.publish(here.job).ok());
    LocalJob there(1, 2, store);
    std::string value = (*store)[{0, "ucx"}];
    value[4] = static_cast<char>(value[4] + 1);  // the wire version
    ASSERT_TRUE(there.put("ucx", value).ok());
    const Status opened = here.transport.open(here.job, here.notebook);
    EXPECT_EQ(opened.error_class(), MPI_ERR_OTHER);
    const std::string text(opened.text());
    EXPECT_NE(text.find(fmt::format("version {} of Gantry's wire", kWireVersion + 1)), text.npos)
        << text;
    EXPECT_NE(text.find(fmt::format("this rank version {}", kWireVersion)), text.npos) << text;
}

TEST_F(UcxTest, AGantryFromBeforeTheVersionWasToldIsRefused) {
    const auto store = std::make_shared<Store>();
    Rank here(0, 2, store, config);
    ASSERT_TRUE(here.transport.publish(here.job).ok());
    LocalJob there(1, 2, store);
    ASSERT_TRUE(there.put("ucx", std::string("10RG\1\0\26\0\1\0\0\0\0\0\0\0", 16)).ok());
    const Status opened = here.transport.open(here.job, here.notebook);
    EXPECT_EQ(opened.error_class(), MPI_ERR_OTHER);
    EXPECT_NE(opened.text().find("before wire version 4"), std::string_view::npos) << opened.text();
}

TEST_F(UcxTest, MixedVersionsOfUcxAreRefusedWithASentence) {
    const auto store = std::make_shared<Store>();
    Rank here(0, 2, store, config);
    ASSERT_TRUE(here.transport.publish(here.job).ok());
    LocalJob there(1, 2, store);
    std::string value = (*store)[{0, "ucx"}];
    value[10] = static_cast<char>(value[10] + 1);  // the minor number
    ASSERT_TRUE(there.put("ucx", value).ok());
    const Status opened = here.transport.open(here.job, here.notebook);
    ASSERT_FALSE(opened.ok());
    EXPECT_NE(opened.text().find("do not understand each other"), std::string_view::npos)
        << opened.text();
}

TEST(UcxLibrary, ThatIsNotThereIsAnErrorThatSaysWhatToInstall) {
    config::Config config;
    config.ucx = "/nowhere/libucp.so.0";
    const Result<std::unique_ptr<Library>> library = Library::load(config);
    ASSERT_FALSE(library.ok());
    EXPECT_NE(library.status().text().find("libucx0"), std::string_view::npos);
    EXPECT_NE(library.status().text().find("GANTRY_UCX"), std::string_view::npos);
}

TEST(UcxFrame, HoldsMessagesOneBehindTheOther) {
    FramePool pool(512, 4096);
    Frame* frame = pool.take(100);
    ASSERT_NE(frame, nullptr);
    frame->begin(3);
    frame->append(1, std::as_bytes(std::span("abc", 3)), {});
    frame->append(2, {}, std::as_bytes(std::span("defgh", 5)));
    // On the wire: what other processes read (docs/wire.md section 4).
    EXPECT_EQ(frame->used, 16u + (8 + 8) + (8 + 8));
    const std::string image(reinterpret_cast<const char*>(frame->bytes()), frame->used);
    EXPECT_EQ(image.substr(0, 16), std::string("30RG\3\0\0\0\0\0\0\0\0\0\0\0", 16));
    EXPECT_EQ(image.substr(16, 8), std::string("\0\0\0\0\3\0\1\0", 8));
    EXPECT_EQ(image.substr(32, 8), std::string("\5\0\0\0\0\0\2\0", 8));
    int from = -1, seen = 0;
    EXPECT_TRUE(each_record({frame->bytes(), frame->used}, from,
                            [&](MessageKind kind, ConstSpan header, ConstSpan payload) {
                                ++seen;
                                EXPECT_EQ(kind, seen);
                                EXPECT_EQ(header.size(), seen == 1 ? 3u : 0u);
                                EXPECT_EQ(payload.size(), seen == 1 ? 0u : 5u);
                            }));
    EXPECT_EQ(from, 3);
    EXPECT_EQ(seen, 2);
    EXPECT_FALSE(each_record({frame->bytes(), frame->used - 8}, from,
                             [](MessageKind, ConstSpan, ConstSpan) {}))
        << "a frame that is cut short must be noticed";
    pool.give(frame);
}

}  // namespace
}  // namespace gantry::transport::ucx
