// SPDX-License-Identifier: BSD-3-Clause
//
// Attribute callbacks: who is called when, in which order, and what their answers do.
#include "running.hpp"

#include <string>
#include <vector>

namespace gantry::mpi {
namespace {

struct Journal {
    std::vector<std::string> lines;
    int answer = MPI_SUCCESS;
    int copies = 1;
};

int note_copy(MPI_Comm, int, void* extra_state, void* in, void* out, int* flag) {
    auto* journal = static_cast<Journal*>(extra_state);
    journal->lines.push_back("copy " + std::to_string(reinterpret_cast<long>(in)));
    *static_cast<void**>(out) = static_cast<char*>(in) + 100;
    *flag = journal->copies;
    return journal->answer;
}
int note_delete(MPI_Comm, int, void* value, void* extra_state) {
    auto* journal = static_cast<Journal*>(extra_state);
    journal->lines.push_back("delete " + std::to_string(reinterpret_cast<long>(value)));
    return journal->answer;
}
void* number(long value) {
    return reinterpret_cast<void*>(value);
}

class AttributesOfCommunicators : public RunningMpi {
  protected:
    Comm& duplicate() {
        MPI_Comm handle = MPI_COMM_NULL;
        expect_ok(wait(blocking(self(), comm_dup(self(), &handle))));
        return *find(handle);
    }
    int key(Journal& journal) {
        int keyval = 0;
        expect_ok(comm_create_keyval(note_copy, note_delete, &keyval, &journal));
        return keyval;
    }
    long value(Comm& comm, int keyval, int expected_flag = 1) {
        void* stored = nullptr;
        int flag = 0;
        expect_ok(comm_get_attr(comm, keyval, &stored, &flag));
        EXPECT_EQ(flag, expected_flag);
        return reinterpret_cast<long>(stored);
    }
};

TEST_F(AttributesOfCommunicators, AreCopiedByDupAndDeletedLatestFirst) {
    Journal journal;
    const int first = key(journal), second = key(journal);
    Comm& comm = duplicate();
    expect_ok(comm_set_attr(comm, first, number(1)));
    expect_ok(comm_set_attr(comm, second, number(2)));
    MPI_Comm copy = MPI_COMM_NULL;
    expect_ok(wait(blocking(comm, comm_dup(comm, &copy))));
    EXPECT_EQ(journal.lines, (std::vector<std::string>{"copy 1", "copy 2"}));
    EXPECT_EQ(value(*find(copy), second), 102);
    journal.lines.clear();
    expect_ok(wait(comm_free(&copy)));
    EXPECT_EQ(copy, MPI_COMM_NULL);
    EXPECT_EQ(journal.lines, (std::vector<std::string>{"delete 102", "delete 101"}));
}

TEST_F(AttributesOfCommunicators, AreNotCopiedWhenTheCallbackSaysSo) {
    Journal journal;
    journal.copies = 0;
    const int keyval = key(journal);
    Comm& comm = duplicate();
    expect_ok(comm_set_attr(comm, keyval, number(1)));
    MPI_Comm copy = MPI_COMM_NULL;
    expect_ok(wait(blocking(comm, comm_dup(comm, &copy))));
    value(*find(copy), keyval, 0);
}

TEST_F(AttributesOfCommunicators, MakeDupFailWithTheCodeOfACopyCallback) {
    Journal journal;
    const int keyval = key(journal);
    Comm& comm = duplicate();
    expect_ok(comm_set_attr(comm, keyval, number(1)));
    journal.answer = MPI_ERR_OTHER;
    MPI_Comm copy = MPI_COMM_NULL;
    expect_class(wait(blocking(comm, comm_dup(comm, &copy))), MPI_ERR_OTHER);
    EXPECT_EQ(copy, MPI_COMM_NULL);
}

TEST_F(AttributesOfCommunicators, StayWhenTheDeleteCallbackRefuses) {
    Journal journal;
    const int keyval = key(journal);
    Comm& comm = duplicate();
    expect_ok(comm_set_attr(comm, keyval, number(1)));
    journal.answer = MPI_ERR_OTHER;
    expect_class(comm_delete_attr(comm, keyval), MPI_ERR_OTHER);
    EXPECT_EQ(value(comm, keyval), 1);
    MPI_Comm handle = comm.handle;
    expect_class(wait(comm_free(&handle)), MPI_ERR_OTHER);
    EXPECT_NE(find(handle), nullptr);
}

TEST_F(AttributesOfCommunicators, CanBeSetAndDeletedByTheDeleteCallbackOfOneThatIsReplaced) {
    struct Meddler {
        Comm* comm = nullptr;
        int other = 0;
        bool deletes = false;
    } meddler;
    const auto meddle = [](MPI_Comm, int keyval, void*, void* extra_state) {
        auto& m = *static_cast<Meddler*>(extra_state);
        if (std::exchange(m.deletes, false)) return comm_delete_attr(*m.comm, keyval).error_class();
        for (int i = 0; i < 200; ++i) {
            int fresh = 0;
            expect_ok(comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &fresh,
                                         nullptr));
            expect_ok(comm_set_attr(*m.comm, fresh, nullptr));
        }
        return MPI_SUCCESS;
    };
    int keyval = 0;
    expect_ok(comm_create_keyval(MPI_COMM_NULL_COPY_FN, meddle, &keyval, &meddler));
    meddler.comm = &duplicate();
    expect_ok(comm_set_attr(*meddler.comm, keyval, number(1)));
    expect_ok(comm_set_attr(*meddler.comm, keyval, number(2)));
    EXPECT_EQ(value(*meddler.comm, keyval), 2);
    meddler.deletes = true;
    expect_ok(comm_set_attr(*meddler.comm, keyval, number(3)));
    EXPECT_EQ(value(*meddler.comm, keyval), 3);
}

TEST_F(AttributesOfCommunicators, KnowThePredefinedCallbacksByValue) {
    int duplicated = 0, dropped = 0;
    expect_ok(comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &duplicated, nullptr));
    expect_ok(
        comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &dropped, nullptr));
    Comm& comm = duplicate();
    expect_ok(comm_set_attr(comm, duplicated, number(5)));
    expect_ok(comm_set_attr(comm, dropped, number(6)));
    MPI_Comm copy = MPI_COMM_NULL;
    expect_ok(wait(blocking(comm, comm_dup(comm, &copy))));
    EXPECT_EQ(value(*find(copy), duplicated), 5);
    value(*find(copy), dropped, 0);
}

TEST_F(AttributesOfCommunicators, OutliveTheFreedKey) {
    Journal journal;
    int keyval = key(journal);
    Comm& comm = duplicate();
    expect_ok(comm_set_attr(comm, keyval, number(1)));
    const int kept = keyval;
    expect_ok(comm_free_keyval(&keyval));
    EXPECT_EQ(keyval, MPI_KEYVAL_INVALID);
    EXPECT_EQ(value(comm, kept), 1);  // it still has its name where it hangs
    MPI_Comm handle = comm.handle;
    expect_ok(wait(comm_free(&handle)));
    EXPECT_EQ(journal.lines, (std::vector<std::string>{"delete 1"}));
    expect_class(comm_set_attr(world(), kept, number(1)), MPI_ERR_KEYVAL);
}

TEST_F(AttributesOfCommunicators, ThatArePredefinedCanBeReadAndNotChanged) {
    int* tag_ub = nullptr;
    int flag = 0;
    expect_ok(comm_get_attr(world(), MPI_TAG_UB, &tag_ub, &flag));
    ASSERT_EQ(flag, 1);
    EXPECT_GE(*tag_ub, 32767);
    expect_class(comm_set_attr(world(), MPI_TAG_UB, number(1)), MPI_ERR_KEYVAL);
    expect_class(comm_delete_attr(world(), MPI_TAG_UB), MPI_ERR_KEYVAL);
    expect_class(comm_get_attr(world(), 99999, &tag_ub, &flag), MPI_ERR_KEYVAL);
}

TEST_F(AttributesOfCommunicators, LastUsedCodeFollowsTheProgramsErrors) {
    int* last = nullptr;
    int flag = 0, added = 0, code = 0;
    expect_ok(add_error_class(&added));
    expect_ok(comm_get_attr(world(), MPI_LASTUSEDCODE, &last, &flag));
    EXPECT_EQ(*last, added);
    expect_ok(add_error_code(added, &code));
    EXPECT_EQ(*last, code);
    expect_class(remove_error_class(added), MPI_ERR_ARG);
    expect_ok(remove_error_code(code));
    expect_ok(remove_error_class(added));
    EXPECT_EQ(*last, MPI_ERR_LASTCODE);
}

}  // namespace
}  // namespace gantry::mpi
