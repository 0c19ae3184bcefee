// SPDX-License-Identifier: BSD-3-Clause
#include "job/letters.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gantry::job {
namespace {

struct Pair {
    Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
    ~Pair() {
        for (const int end : ends)
            close(end);
    }
    int ends[2] = {-1, -1};
};

TEST(Letters, ComeWholeAndInOrder) {
    Pair pair;
    Letters here = Letters::borrowed(pair.ends[0]), there = Letters::borrowed(pair.ends[1]);
    EXPECT_FALSE(there.poll().value().has_value());
    here.send("first");
    here.send("");
    here.send("third");
    ASSERT_TRUE(here.push().ok());
    for (const char* text : {"first", "", "third"})
        EXPECT_EQ(there.poll().value().value_or("nothing"), text);
    EXPECT_FALSE(there.poll().value().has_value());
}

TEST(Letters, LongerThanTheSocketHoldsArriveInPieces) {
    Pair pair;
    Letters here = Letters::borrowed(pair.ends[0]), there = Letters::borrowed(pair.ends[1]);
    const std::string text(4'000'000, 'x');
    here.send(text);
    std::optional<std::string> arrived;
    while (!arrived) {
        ASSERT_TRUE(here.push().ok());
        Result<std::optional<std::string>> letter = there.poll();
        ASSERT_TRUE(letter.ok());
        arrived = *letter;
    }
    EXPECT_EQ(*arrived, text);
}

TEST(Letters, TakeNothingOfWhatFollows) {
    Pair pair;
    Letters here = Letters::borrowed(pair.ends[0]), there = Letters::borrowed(pair.ends[1]);
    here.send("letter");
    ASSERT_TRUE(here.push().ok());
    ASSERT_EQ(write(pair.ends[0], "rest", 4), 4);
    EXPECT_EQ(there.poll().value().value_or(""), "letter");
    char rest[5] = {};
    ASSERT_EQ(read(pair.ends[1], rest, 4), 4);
    EXPECT_STREQ(rest, "rest");
}

TEST(Letters, OfSomebodyWhoHangsUpOrSpeaksSomethingElseAreErrors) {
    Pair pair;
    Letters there = Letters::borrowed(pair.ends[1]);
    ASSERT_EQ(write(pair.ends[0], "GET / HTTP/1.0\r\n", 16), 16);
    EXPECT_EQ(there.poll().status().error_class(), MPI_ERR_PORT);
    Pair other;
    Letters left = Letters::borrowed(other.ends[1]);
    shutdown(other.ends[0], SHUT_RDWR);
    EXPECT_EQ(left.poll().status().error_class(), MPI_ERR_PORT);
}

}  // namespace
}  // namespace gantry::job
