// SPDX-License-Identifier: BSD-3-Clause
//
// What the network tests share: ranks of one process, each with its own UCX worker, over TCP of
// this machine, driven in turn.
#pragma once

#include "shm_world.hpp"
#include "transport/ucx/ucx.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <set>

namespace gantry::transport::ucx {

using shm::LocalJob;
using shm::Notebook;
using shm::Store;

struct Rank {
    Rank(int number, int size, std::shared_ptr<Store> store, const config::Config& the_config)
        : config(the_config), job(number, size, std::move(store)), transport(clock, config) {}
    SteadyClock clock;
    config::Config config;
    Executor executor{clock};
    LocalJob job;
    Notebook notebook;
    UcxTransport transport;
};

// True when UCX is here; else says why its tests are not run.
inline bool found_ucx(std::string& why) {
    const config::Config config;
    const QuietStart quiet(config);
    const Result<std::unique_ptr<Library>> library = Library::load(config);
    why = std::string(library.status().text());
    return library.ok();
}

// Of connected TCP sockets of this process.
inline std::set<int> connections() {
    std::set<int> found;
    DIR* folder = opendir("/proc/self/fd");
    if (folder == nullptr) return found;
    while (const dirent* entry = readdir(folder)) {
        const int descriptor = std::atoi(entry->d_name);
        sockaddr_storage peer{};
        socklen_t length = sizeof peer;
        if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
            peer.ss_family == AF_INET)
            found.insert(descriptor);
    }
    closedir(folder);
    return found;
}

class UcxTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string why;
        if (!found_ucx(why)) GTEST_SKIP() << "not run: " << why;
    }
    void TearDown() override {
        for (const auto& rank : ranks)
            if (rank != nullptr) leave(*rank);
    }
    void start(int size) {
        const auto store = std::make_shared<Store>();
        for (int number = 0; number < size; ++number) {
            ranks.push_back(std::make_unique<Rank>(number, size, store, config));
            const Status published = ranks.back()->transport.publish(ranks.back()->job);
            ASSERT_TRUE(published.ok()) << published.text();
        }
        for (const auto& rank : ranks) {
            const Status opened = rank->transport.open(rank->job, rank->notebook);
            ASSERT_TRUE(opened.ok()) << opened.text();
        }
    }
    UcxTransport& transport(int rank) { return ranks[static_cast<std::size_t>(rank)]->transport; }
    Notebook& notebook(int rank) { return ranks[static_cast<std::size_t>(rank)]->notebook; }
    void turn() {
        for (const auto& rank : ranks) {
            if (rank == nullptr) continue;
            rank->transport.progress();
            rank->executor.run_ready();
        }
    }
    // Drives every rank until the condition holds; false after ten seconds.
    bool until(const std::function<bool()>& condition) {
        const SteadyClock clock;
        const Nanoseconds end = clock.now() + 10 * kSecond;
        while (!condition()) {
            if (clock.now() > end) return false;
            turn();
        }
        return true;
    }
    void leave(Rank& rank) {
        Task<Status> left = rank.transport.close(rank.executor);
        left.start();
        EXPECT_TRUE(until([&] { return left.done(); })) << "a rank cannot leave";
    }
    static Extent extent(std::vector<std::byte>& memory) {
        return {.address = memory.data(), .bytes = memory.size()};
    }
    static ConstSpan bytes(std::string_view text) {
        return std::as_bytes(std::span(text.data(), text.size()));
    }

    config::Config config;
    std::vector<std::unique_ptr<Rank>> ranks;
};

}  // namespace gantry::transport::ucx
