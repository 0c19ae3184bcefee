// SPDX-License-Identifier: BSD-3-Clause
//
// Info objects: order, lengths, errors.
#include "running.hpp"

#include <string>

namespace gantry::mpi {
namespace {

Info& fresh() {
    MPI_Info handle;
    expect_ok(info_create(&handle));
    return *find(handle);
}

TEST(InfoObjects, KeepTheOrderOfKeysAndReplaceValues) {
    Info& info = fresh();
    expect_ok(info_set(info, "one", "1"));
    expect_ok(info_set(info, "two", "2"));
    expect_ok(info_set(info, "one", "uno"));
    int keys = 0;
    expect_ok(info_get_nkeys(info, &keys));
    EXPECT_EQ(keys, 2);
    char key[MPI_MAX_INFO_KEY], value[8];
    expect_ok(info_get_nthkey(info, 0, key));
    EXPECT_STREQ(key, "one");
    int length = sizeof value, found = 0;
    expect_ok(info_get_string(info, "one", &length, value, &found));
    EXPECT_EQ(found, 1);
    EXPECT_EQ(length, 4) << "with the terminating zero";
    EXPECT_STREQ(value, "uno");
}

TEST(InfoObjects, GiveTheLengthAloneForAnEmptyBufferAndCutForAShortOne) {
    Info& info = fresh();
    expect_ok(info_set(info, "key", "value"));
    int length = 0, found = 0;
    char value[4] = "xyz";
    expect_ok(info_get_string(info, "key", &length, value, &found));
    EXPECT_EQ(length, 6);
    EXPECT_STREQ(value, "xyz");
    length = 4;
    expect_ok(info_get_string(info, "key", &length, value, &found));
    EXPECT_EQ(length, 6);
    EXPECT_STREQ(value, "val");
}

TEST(InfoObjects, SayWhatIsWrongWithAKey) {
    Info& info = fresh();
    expect_class(info_delete(info, "absent"), MPI_ERR_INFO_NOKEY);
    expect_class(info_set(info, "", "v"), MPI_ERR_INFO_KEY);
    expect_class(info_set(info, std::string(MPI_MAX_INFO_KEY, 'k').c_str(), "v"), MPI_ERR_INFO_KEY);
    expect_class(info_set(info, "k", std::string(MPI_MAX_INFO_VAL, 'v').c_str()),
                 MPI_ERR_INFO_VALUE);
    char key[MPI_MAX_INFO_KEY];
    expect_class(info_get_nthkey(info, 0, key), MPI_ERR_ARG);
}

TEST(InfoObjects, AreIndependentCopies) {
    Info& info = fresh();
    expect_ok(info_set(info, "k", "old"));
    MPI_Info copy;
    expect_ok(info_dup(info, &copy));
    expect_ok(info_set(info, "k", "new"));
    EXPECT_EQ(*value_of(find(copy)->pairs, "k"), "old");
    const MPI_Info stale = copy;
    expect_ok(info_free(&copy));
    EXPECT_EQ(copy, MPI_INFO_NULL);
    EXPECT_EQ(find(stale), nullptr);
}

TEST(InfoObjects, OfTheEnvironmentCannotBeChanged) {
    Info& environment = *find(MPI_INFO_ENV);
    expect_class(info_set(environment, "k", "v"), MPI_ERR_INFO);
    MPI_Info handle = MPI_INFO_ENV;
    expect_class(info_free(&handle), MPI_ERR_INFO);
    EXPECT_NE(value_of(environment.pairs, kMemoryKindsKey), nullptr);
}

}  // namespace
}  // namespace gantry::mpi
