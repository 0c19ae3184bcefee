// SPDX-License-Identifier: BSD-3-Clause
//
// Descriptions in the tool information interface: strings of any room, enumerations, categories.
#include "mpi/tool/tool.hpp"
#include "../running.hpp"

#include <set>
#include <string>
#include <vector>

namespace gantry::mpi {
namespace {

class ToolInterface : public RunningMpi {
  protected:
    void SetUp() override {
        int provided = 0;
        expect_ok(t_init_thread(MPI_THREAD_SINGLE, &provided));
        EXPECT_EQ(provided, MPI_THREAD_SINGLE);
    }
    void TearDown() override { expect_ok(t_finalize()); }

    static int control(const char* name) {
        int index = -1;
        expect_ok(t_cvar_get_index(name, &index));
        return index;
    }
    static MPI_T_enum words_of(const char* name) {
        MPI_T_enum words = MPI_T_ENUM_NULL;
        expect_ok(t_cvar_get_info(control(name), nullptr, nullptr, nullptr, nullptr, &words,
                                  nullptr, nullptr, nullptr, nullptr));
        return words;
    }
    static std::string item(MPI_T_enum words, int index) {
        char name[64] = "";
        int length = sizeof name, value = -1;
        expect_ok(t_enum_get_item(words, index, &value, name, &length));
        EXPECT_EQ(value, index);
        return name;
    }
};

TEST_F(ToolInterface, StringsAreCutToTheirRoomAndSayHowMuchTheyNeed) {
    char room[8] = "unseen.";
    int length = 4;
    tool::give_text("abcdef", room, &length);
    EXPECT_STREQ(room, "abc");
    EXPECT_EQ(length, 7);
    length = 7;
    tool::give_text("abcdef", room, &length);
    EXPECT_STREQ(room, "abcdef");
    EXPECT_EQ(length, 7);
    length = 0;
    tool::give_text("xyz", room, &length);
    EXPECT_STREQ(room, "abcdef");
    EXPECT_EQ(length, 4);
    length = 5;
    tool::give_text("xyz", nullptr, &length);
    EXPECT_EQ(length, 4);
    tool::give_text("xyz", room, nullptr);
    EXPECT_STREQ(room, "abcdef");
}

TEST_F(ToolInterface, SwitchesAndWordsHaveTheirItems) {
    const MPI_T_enum progress = words_of("GANTRY_PROGRESS");
    EXPECT_EQ(item(progress, 0), "calls");
    EXPECT_EQ(item(progress, 1), "thread");
    const MPI_T_enum onoff = words_of("GANTRY_SHM");
    EXPECT_EQ(item(onoff, 0), "off");
    EXPECT_EQ(item(onoff, 1), "on");
    EXPECT_EQ(words_of("GANTRY_EAGER_LIMIT"), MPI_T_ENUM_NULL);
    int number = 0;
    expect_ok(t_enum_get_info(words_of("GANTRY_LOG"), &number, nullptr, nullptr));
    EXPECT_EQ(number, 5);
    expect_class(t_enum_get_item(progress, 2, nullptr, nullptr, nullptr), MPI_T_ERR_INVALID_INDEX);
    expect_class(t_enum_get_info(MPI_T_ENUM_NULL, &number, nullptr, nullptr),
                 MPI_T_ERR_INVALID_HANDLE);
    expect_class(t_enum_get_info(reinterpret_cast<MPI_T_enum>(&number), &number, nullptr, nullptr),
                 MPI_T_ERR_INVALID_HANDLE);
}

TEST_F(ToolInterface, EveryVariableIsFoundByItsNameAndInOneCategory) {
    int categories = 0, controls = 0, counters = 0;
    expect_ok(t_category_get_num(&categories));
    expect_ok(t_cvar_get_num(&controls));
    expect_ok(t_pvar_get_num(&counters));
    std::multiset<int> seen_controls, seen_counters, seen_parts;
    for (int category = 0; category < categories; ++category) {
        int with_controls = 0, with_counters = 0, parts = 0, index = -1, length = 64;
        char name[64] = "";
        expect_ok(t_category_get_info(category, name, &length, nullptr, nullptr, &with_controls,
                                      &with_counters, &parts));
        expect_ok(t_category_get_index(name, &index));
        EXPECT_EQ(index, category);
        std::vector<int> indices(static_cast<std::size_t>(controls + counters));
        const auto take = [&](int number, std::multiset<int>& into) {
            into.insert(indices.begin(), indices.begin() + number);
        };
        expect_ok(t_category_get_cvars(category, controls, indices.data()));
        take(with_controls, seen_controls);
        expect_ok(t_category_get_pvars(category, counters, indices.data()));
        take(with_counters, seen_counters);
        expect_ok(t_category_get_categories(category, categories, indices.data()));
        take(parts, seen_parts);
    }
    for (int i = 0; i < controls; ++i)
        EXPECT_EQ(seen_controls.count(i), 1u) << i;
    for (int i = 0; i < counters; ++i)
        EXPECT_EQ(seen_counters.count(i), 1u) << i;
    // All but the first, which is above them.
    EXPECT_EQ(seen_parts.size(), static_cast<std::size_t>(categories) - 1);
    for (int i = 0; i < counters; ++i) {
        char name[64] = "";
        int length = sizeof name, kind = 0, index = -1;
        expect_ok(t_pvar_get_info(i, name, &length, nullptr, &kind, nullptr, nullptr, nullptr,
                                  nullptr, nullptr, nullptr, nullptr, nullptr));
        expect_ok(t_pvar_get_index(name, kind, &index));
        EXPECT_EQ(index, i);
    }
}

TEST_F(ToolInterface, ListsHoldNoMoreThanTheyHaveRoomFor) {
    int index = -1;
    expect_ok(t_category_get_index("gantry.p2p", &index));
    int indices[3] = {-7, -7, -7};
    expect_ok(t_category_get_pvars(index, 2, indices));
    EXPECT_NE(indices[0], -7);
    EXPECT_NE(indices[1], -7);
    EXPECT_EQ(indices[2], -7);
    expect_class(t_category_get_cvars(-1, 2, indices), MPI_T_ERR_INVALID_INDEX);
}

TEST_F(ToolInterface, MessagesToOneselfAreCountedBothWays) {
    MPI_T_pvar_session session;
    expect_ok(t_pvar_session_create(&session));
    MPI_T_pvar_handle sent, received;
    int index = -1, count = 0;
    MPI_Comm comm = MPI_COMM_SELF;
    expect_ok(t_pvar_get_index("comm_messages_sent", MPI_T_PVAR_CLASS_COUNTER, &index));
    expect_ok(t_pvar_handle_alloc(session, index, &comm, &sent, &count));
    expect_ok(t_pvar_get_index("comm_messages_received", MPI_T_PVAR_CLASS_COUNTER, &index));
    expect_ok(t_pvar_handle_alloc(session, index, &comm, &received, &count));
    expect_ok(t_pvar_start(session, sent));
    expect_ok(t_pvar_start(session, received));
    int from = 4, to = 0;
    expect_ok(wait(sendrecv(&from, 1, type(MPI_INT), 0, 3, &to, 1, type(MPI_INT), 0, 3, self(),
                            MPI_STATUS_IGNORE)));
    unsigned long long value = 0;
    expect_ok(t_pvar_read(session, sent, &value));
    EXPECT_EQ(value, 1u);
    expect_ok(t_pvar_read(session, received, &value));
    EXPECT_EQ(value, 1u);
    expect_ok(t_pvar_session_free(&session));
}

}  // namespace
}  // namespace gantry::mpi
