// SPDX-License-Identifier: BSD-3-Clause
#include "device/descriptor_inbox.hpp"

#include "exporter.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gantry::device {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

ino_t file_of(int descriptor) {
    struct stat about {};
    return fstat(descriptor, &about) == 0 ? about.st_ino : 0;
}

TEST(DescriptorInbox, ADescriptorArrivesWithItsMessageBeforeTheSendReturns) {
    DescriptorInbox inbox;
    ASSERT_NE(inbox.number(), 0u);
    const Descriptor file(memfd_create("travels", MFD_CLOEXEC));
    ASSERT_TRUE(DescriptorInbox::send(inbox.number(), bytes_of("seven"), file.number()).ok());
    std::byte text[16];
    DescriptorInbox::Letter letter;
    ASSERT_TRUE(inbox.take(text, letter));
    EXPECT_EQ(std::string(reinterpret_cast<char*>(text), letter.bytes), "seven");
    EXPECT_EQ(file_of(letter.descriptor.number()), file_of(file.number()));
    EXPECT_NE(fcntl(letter.descriptor.number(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_FALSE(inbox.take(text, letter));
}

TEST(DescriptorInbox, TakesFromAnotherProcessAndInOrder) {
    DescriptorInbox inbox;
    const std::uint32_t number = inbox.number();
    const pid_t child = fork();
    if (child == 0) {
        const Descriptor file(memfd_create("travels", MFD_CLOEXEC));
        const bool sent = DescriptorInbox::send(number, bytes_of("1"), file.number()).ok() &&
                          DescriptorInbox::send(number, bytes_of("2"), -1).ok();
        _exit(sent ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
    std::byte text[4];
    DescriptorInbox::Letter letter;
    ASSERT_TRUE(inbox.take(text, letter));
    EXPECT_EQ(text[0], std::byte{'1'});
    EXPECT_TRUE(letter.descriptor.is_open());
    ASSERT_TRUE(inbox.take(text, letter));
    EXPECT_EQ(text[0], std::byte{'2'});
    EXPECT_FALSE(letter.descriptor.is_open());
}

TEST(DescriptorInbox, AFullOrClosedInboxIsAnErrorAndNoWait) {
    std::uint32_t gone = 0;
    {
        DescriptorInbox inbox;
        gone = inbox.number();
        Status full;
        for (int i = 0; i < 100000 && full.ok(); ++i)
            full = DescriptorInbox::send(gone, bytes_of("x"), -1);
        EXPECT_FALSE(full.ok());
    }
    EXPECT_FALSE(DescriptorInbox::send(gone, bytes_of("x"), -1).ok());
}

TEST(DescriptorInbox, NothingStaysOpen) {
    const int before = testing_support::count_open_descriptors();
    {
        DescriptorInbox inbox;
        const Descriptor file(memfd_create("travels", MFD_CLOEXEC));
        for (int i = 0; i < 3; ++i)
            ASSERT_TRUE(DescriptorInbox::send(inbox.number(), bytes_of("x"), file.number()).ok());
        std::byte text[4];
        DescriptorInbox::Letter letter;
        ASSERT_TRUE(inbox.take(text, letter));
        ASSERT_TRUE(inbox.take(text, letter));  // the first one is closed, the third never taken
    }
    EXPECT_EQ(testing_support::count_open_descriptors(), before);
}

}  // namespace
}  // namespace gantry::device
