// SPDX-License-Identifier: BSD-3-Clause
//
// FaultyRing: a ring over a system that is given. What is asked happens when it is taken, in any order;
// sometimes nothing has ended yet.
#pragma once

#include "io/ring.hpp"
#include "io/system.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>
#include <vector>

namespace gantry::io {

class FaultyRing final : public Ring {
  public:
    FaultyRing(System& system, int most, unsigned seed)
        : system_(system), most_(most), random_(seed) {}

    int largest = 0;  // how many were under way at once

    int most() const override { return most_; }
    void ask(int file, Direction direction, const Call& call, std::uint64_t token) override {
        asked_.push_back({file, direction, &call, token});
        largest = std::max(largest, static_cast<int>(asked_.size()));
    }
    std::size_t take(std::span<Ended> ended) override {
        std::size_t number = 0;
        while (number < ended.size() && !asked_.empty() && random_() % 3 != 0) {
            std::swap(asked_[random_() % asked_.size()], asked_.back());
            const Asked one = asked_.back();
            asked_.pop_back();
            const Call& call = *one.call;
            std::int64_t returned =
                one.direction == Direction::read
                    ? system_.read(one.file, call.pieces.data(), call.number, call.offset)
                    : system_.write(one.file, call.pieces.data(), call.number, call.offset);
            // What a thread gave that has ended.
            if (returned == -EINTR && random_() % 2 == 0) returned = -ECANCELED;
            ended[number++] = {one.token, returned};
        }
        return number;
    }
    void wait() override {}

  private:
    struct Asked {
        int file;
        Direction direction;
        const Call* call;
        std::uint64_t token;
    };
    System& system_;
    const int most_;
    std::mt19937 random_;
    std::vector<Asked> asked_;
};

}  // namespace gantry::io
