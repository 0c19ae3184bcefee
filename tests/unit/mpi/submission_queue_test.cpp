// SPDX-License-Identifier: BSD-3-Clause
//
// What the program leaves in the submission queue is started in its order by who comes next into the engine,
// and taken out without going there. One rank sends to itself; nobody else drives its engine.
#include "mpi/engine/engine.hpp"
#include "mpi/engine/outside.hpp"
#include "mpi/engine/submission_queue.hpp"
#include "mpi/request/status.hpp"
#include "running.hpp"

#include <array>
#include <span>
#include <vector>

namespace gantry::mpi {
namespace {

class Posting : public RunningMpi {
  protected:
    void SetUp() override { expect_ok(box().open()); }

    Engine& engine() { return *process().engine; }
    SubmissionQueue& box() { return engine().submission_queue(); }
    MPI_Request post(p2p::RequestKind kind, std::vector<int>& data, int tag) {
        Datatype& ints = type(MPI_INT);
        p2p::Request* request = box().put({kind,
                                           p2p::SendMode::standard,
                                           &self().group,
                                           {data.data(), data.size(), &ints.layout},
                                           0,
                                           tag});
        if (request == nullptr) return MPI_REQUEST_NULL;
        const MPI_Request handle = engine().requests().hand_out(request, self(), &ints);
        box().post(*request);
        return handle;
    }
    MPI_Request send(std::vector<int>& data, int tag) {
        return post(p2p::RequestKind::send, data, tag);
    }
    MPI_Request receive(std::vector<int>& data, int tag) {
        return post(p2p::RequestKind::receive, data, tag);
    }
    void take(MPI_Request& handle, MPI_Status* status = MPI_STATUS_IGNORE) {
        p2p::Request* request = box().ended_well(handle);
        ASSERT_NE(request, nullptr);
        expect_ok(engine().requests().retire(handle, *request, status));
        EXPECT_EQ(handle, MPI_REQUEST_NULL);
    }
    void drive() {
        box().start();
        for (int turn = 0; turn < 100; ++turn)
            engine().progress();
    }
};

TEST_F(Posting, NothingStartsUntilSomebodyComes) {
    std::vector<int> from{4, 5}, to(2);
    MPI_Request sent = send(from, 1), received = receive(to, 1);
    for (int turn = 0; turn < 100; ++turn)
        engine().progress();
    EXPECT_EQ(box().ended_well(received), nullptr);
    EXPECT_TRUE(box().has_posts());
    EXPECT_EQ(box().start(), 2);
    EXPECT_FALSE(box().has_posts());
    drive();
    MPI_Status status{};
    take(received, &status);
    take(sent);
    EXPECT_EQ(to, from);
    EXPECT_EQ(std::tuple(status.MPI_SOURCE, status.MPI_TAG, bytes_of(status)),
              std::tuple(0, 1, 8u));
}

TEST_F(Posting, MessagesMatchInTheOrderOfPosting) {
    std::array<std::vector<int>, 10> from, to;
    std::array<MPI_Request, 20> requests{};
    for (int i = 0; i < 10; ++i) {
        from[i] = {i};
        to[i] = {-1};
        requests[i] = send(from[i], 2);
        requests[10 + i] = receive(to[i], 2);
    }
    drive();
    for (MPI_Request& request : requests)
        take(request);
    for (int i = 0; i < 10; ++i)
        EXPECT_EQ(to[i], from[i]);
}

TEST_F(Posting, AFullBoxRefusesUntilOneIsTaken) {
    std::vector<int> from{1}, to(1);
    std::vector<MPI_Request> receives;
    for (std::size_t i = 0; i < SubmissionQueue::kSlots; ++i) {
        receives.push_back(receive(to, 3));
        ASSERT_NE(receives.back(), MPI_REQUEST_NULL);
    }
    EXPECT_EQ(receive(to, 3), MPI_REQUEST_NULL);
    drive();
    EXPECT_EQ(receive(to, 3), MPI_REQUEST_NULL) << "those that were started are still held";
    for (MPI_Request& handle : receives) {
        MPI_Request sent;
        expect_ok(isend(from.data(), 1, type(MPI_INT), 0, 3, self(), &sent));
        drive();
        expect_ok(wait(mpi::wait(&sent, MPI_STATUS_IGNORE)));
        take(handle);
    }
    MPI_Request again = receive(to, 3);
    ASSERT_NE(again, MPI_REQUEST_NULL);
    expect_ok(cancel(&again));  // nothing to cancel before it is started
    drive();
    expect_ok(cancel(&again));
    drive();
    MPI_Status status{};
    take(again, &status);
    EXPECT_TRUE(is_cancelled(status));
}

TEST_F(Posting, AFailureIsLeftToTheUsualWay) {
    std::vector<int> from{1, 2}, to(1);
    MPI_Request sent = send(from, 4), received = receive(to, 4);
    drive();
    take(sent);
    EXPECT_EQ(box().ended_well(received), nullptr);
    expect_class(wait(mpi::wait(&received, MPI_STATUS_IGNORE)), MPI_ERR_TRUNCATE);
    EXPECT_EQ(received, MPI_REQUEST_NULL);
    process().failed_on = {};
}

TEST_F(Posting, WhatTheProgramFreesEarlyComesBackAtItsEnd) {
    std::vector<int> from{6}, to(1);
    for (std::size_t i = 0; i < 2 * SubmissionQueue::kSlots; ++i) {
        MPI_Request received = receive(to, 5);
        ASSERT_NE(received, MPI_REQUEST_NULL) << i;
        if (i % 2 == 0) drive();  // freed once it is started, or before
        expect_ok(request_free(&received));
        EXPECT_EQ(received, MPI_REQUEST_NULL);
        MPI_Request sent = send(from, 5);
        drive();
        take(sent);
        EXPECT_EQ(to[0], 6);
        to[0] = 0;
    }
}

TEST_F(Posting, HandlesThatEndedOrNeverWereAreRefused) {
    std::vector<int> from{6}, to(1);
    MPI_Request sent = send(from, 6), received = receive(to, 6);
    drive();
    MPI_Request stale = sent, usual;
    take(sent);
    EXPECT_EQ(box().ended_well(stale), nullptr);
    EXPECT_EQ(find(stale), nullptr);
    EXPECT_EQ(box().ended_well(reinterpret_cast<MPI_Request>(&from)), nullptr);
    expect_ok(irecv(to.data(), 1, type(MPI_INT), 0, 7, self(), &usual));
    EXPECT_EQ(box().ended_well(usual), nullptr);
    expect_ok(cancel(&usual));
    expect_ok(wait(mpi::wait(&usual, MPI_STATUS_IGNORE)));
    take(received);
}

TEST_F(Posting, WhatHasEndedIsTakenAllOrNothing) {
    const auto take_all = [this](std::span<MPI_Request> requests, MPI_Status* statuses) {
        return outside::take_ended(engine(), static_cast<int>(requests.size()), requests.data(),
                                   statuses);
    };
    std::vector<int> from{6}, to(1), late(1);
    std::array<MPI_Request, 4> requests{send(from, 9), MPI_REQUEST_NULL, receive(late, 10),
                                        receive(to, 9)};
    drive();
    std::array<MPI_Status, 4> statuses{};
    for (MPI_Status& status : statuses)
        status.MPI_ERROR = 777;
    EXPECT_FALSE(take_all(requests, statuses.data())) << "one has not ended";
    EXPECT_NE(requests[0], MPI_REQUEST_NULL);
    MPI_Request more = send(from, 10);
    drive();
    EXPECT_TRUE(take_all(requests, statuses.data()));
    for (std::size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(requests[i], MPI_REQUEST_NULL);
        EXPECT_EQ(statuses[i].MPI_ERROR, i == 1 ? MPI_SUCCESS : 777) << "left alone, but for none";
    }
    EXPECT_EQ(std::tuple(statuses[3].MPI_SOURCE, statuses[3].MPI_TAG, bytes_of(statuses[3])),
              std::tuple(0, 9, 4u));
    EXPECT_EQ(std::tuple(statuses[1].MPI_SOURCE, bytes_of(statuses[1])),
              std::tuple(MPI_ANY_SOURCE, 0u));
    std::array<MPI_Request, 2> twice{more, more};
    EXPECT_TRUE(take_all(twice, MPI_STATUSES_IGNORE)) << "the second one is nothing any more";
    EXPECT_FALSE(outside::take_ended(engine(), -1, requests.data(), MPI_STATUSES_IGNORE));

    std::vector<int> two{1, 2};
    std::array<MPI_Request, 2> failed{send(two, 11), receive(to, 11)};
    drive();
    EXPECT_FALSE(take_all(failed, MPI_STATUSES_IGNORE)) << "a failure is told the usual way";
    expect_class(wait(waitall(2, failed.data(), MPI_STATUSES_IGNORE)), MPI_ERR_IN_STATUS);
    process().failed_on = {};
}

TEST_F(Posting, DerivedTypesStayUntilTheEnd) {
    MPI_Datatype pair;
    expect_ok(type_contiguous(2, type(MPI_INT), &pair));
    expect_ok(type_commit(&pair));
    Datatype& pairs = *find(pair);
    std::vector<int> from{8, 9}, to(2);
    p2p::Request* request = box().put({p2p::RequestKind::receive,
                                       p2p::SendMode::standard,
                                       &self().group,
                                       {to.data(), 1, &pairs.layout},
                                       0,
                                       8});
    MPI_Request received = engine().requests().hand_out(request, self(), &pairs);
    box().post(*request);
    expect_ok(type_free(&pair));
    MPI_Request sent = send(from, 8);
    drive();
    take(sent);
    take(received);
    EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace gantry::mpi
