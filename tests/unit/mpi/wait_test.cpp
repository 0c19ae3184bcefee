// SPDX-License-Identifier: BSD-3-Clause
//
// Wait and Test forms on messages of a rank to itself: statuses, null and inactive requests,
// failures among several.
#include "mpi/engine/engine.hpp"
#include "running.hpp"

#include <array>

namespace gantry::mpi {
namespace {

class Waiting : public RunningMpi {
  protected:
    MPI_Request receive(int* into, int tag, int count = 1) {
        MPI_Request request;
        expect_ok(irecv(into, count, type(MPI_INT), 0, tag, self(), &request));
        return request;
    }
    void send_now(const int* from, int tag, int count = 1) {
        MPI_Request request;
        expect_ok(isend(from, count, type(MPI_INT), 0, tag, self(), &request));
        expect_ok(wait(mpi::wait(&request, MPI_STATUS_IGNORE)));
        EXPECT_EQ(request, MPI_REQUEST_NULL);
    }
    MPI_Status marked() {
        MPI_Status status{};
        status.MPI_ERROR = 777;
        return status;
    }
    void expect_empty(const MPI_Status& status) {
        EXPECT_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
        EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
        EXPECT_EQ(status.MPI_ERROR, MPI_SUCCESS);
        MPI_Count count = -1;
        expect_ok(get_count(&status, type(MPI_INT), &count));
        EXPECT_EQ(count, 0);
    }
};

TEST_F(Waiting, ForOneRequestLeavesTheErrorFieldAlone) {
    int got = 0;
    const int sent = 5;
    MPI_Request request = receive(&got, 1);
    send_now(&sent, 1);
    MPI_Status status = marked();
    expect_ok(wait(mpi::wait(&request, &status)));
    EXPECT_EQ(got, 5);
    EXPECT_EQ(std::tuple(status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR),
              std::tuple(0, 1, 777));
    EXPECT_EQ(request, MPI_REQUEST_NULL);
}

TEST_F(Waiting, ForNoRequestGivesAnEmptyStatus) {
    MPI_Request null = MPI_REQUEST_NULL;
    MPI_Status status = marked();
    expect_ok(wait(mpi::wait(&null, &status)));
    expect_empty(status);
    int index = 0;
    std::array<MPI_Request, 2> nulls{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    expect_ok(wait(waitany(2, nulls.data(), &index, &status)));
    EXPECT_EQ(index, MPI_UNDEFINED);
    expect_empty(status);
    int outcount = 0;
    std::array<int, 2> indices{};
    expect_ok(wait(waitsome(2, nulls.data(), &outcount, indices.data(), MPI_STATUSES_IGNORE)));
    EXPECT_EQ(outcount, MPI_UNDEFINED);
    int flag = 0;
    expect_ok(testall(2, nulls.data(), &flag, MPI_STATUSES_IGNORE));
    EXPECT_EQ(flag, 1);
}

TEST_F(Waiting, ForAnyReturnsTheOneThatIsComplete) {
    std::array<int, 2> got{};
    const int sent = 9;
    std::array<MPI_Request, 3> requests{receive(&got[0], 10), MPI_REQUEST_NULL,
                                        receive(&got[1], 11)};
    send_now(&sent, 11);
    int index = -1;
    MPI_Status status = marked();
    expect_ok(wait(waitany(3, requests.data(), &index, &status)));
    EXPECT_EQ(index, 2);
    EXPECT_EQ(requests[2], MPI_REQUEST_NULL);
    EXPECT_NE(requests[0], MPI_REQUEST_NULL);
    int flag = 1;
    expect_ok(testany(3, requests.data(), &index, &flag, &status));
    EXPECT_EQ(flag, 0);
    send_now(&sent, 10);
    expect_ok(wait(waitany(3, requests.data(), &index, &status)));
    EXPECT_EQ(index, 0);
}

TEST_F(Waiting, ForAllTellsFailuresInTheStatuses) {
    std::array<int, 2> got{};
    const std::array<int, 2> sent{1, 2};
    std::array<MPI_Request, 2> requests{receive(&got[0], 20), receive(&got[1], 21)};
    send_now(sent.data(), 20, 2);  // does not fit
    send_now(sent.data(), 21, 1);
    std::array<MPI_Status, 2> statuses{marked(), marked()};
    expect_class(wait(waitall(2, requests.data(), statuses.data())), MPI_ERR_IN_STATUS);
    EXPECT_EQ(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE);
    EXPECT_EQ(statuses[1].MPI_ERROR, MPI_SUCCESS);
    EXPECT_EQ(requests[0], MPI_REQUEST_NULL);
    EXPECT_EQ(process().failed_on.comm, &self())
        << "the failure belongs to the request's communicator";
    process().failed_on = {};
}

TEST_F(Waiting, ForAllGivesBackWhatHasEndedInFront) {
    std::array<int, 3> got{};
    const std::array<int, 2> sent{1, 2};
    std::array<MPI_Request, 4> requests{receive(&got[0], 50), MPI_REQUEST_NULL,
                                        receive(&got[1], 51), receive(&got[2], 52)};
    std::array<MPI_Status, 4> statuses{marked(), marked(), marked(), marked()};
    Pending all = waitall(4, requests.data(), statuses.data());
    EXPECT_FALSE(all.poll());
    EXPECT_NE(requests[0], MPI_REQUEST_NULL);
    send_now(sent.data(), 51, 2);  // does not fit
    send_now(sent.data(), 50);
    while (process().engine->progress() > 0) {
    }
    EXPECT_FALSE(all.poll());
    EXPECT_EQ(requests[0], MPI_REQUEST_NULL);
    EXPECT_EQ(std::tuple(statuses[0].MPI_SOURCE, statuses[0].MPI_TAG), std::tuple(0, 50));
    expect_empty(statuses[1]);
    EXPECT_NE(requests[2], MPI_REQUEST_NULL) << "a failure is told with all the others";
    send_now(sent.data(), 52);
    expect_class(wait(std::move(all)), MPI_ERR_IN_STATUS);
    for (MPI_Request each : requests)
        EXPECT_EQ(each, MPI_REQUEST_NULL);
    EXPECT_EQ(std::tuple(statuses[0].MPI_ERROR, statuses[1].MPI_ERROR, statuses[2].MPI_ERROR,
                         statuses[3].MPI_ERROR),
              std::tuple(MPI_SUCCESS, MPI_SUCCESS, MPI_ERR_TRUNCATE, MPI_SUCCESS));
    EXPECT_EQ(std::tuple(statuses[0].MPI_TAG, statuses[3].MPI_TAG), std::tuple(50, 52));
    process().failed_on = {};
}

TEST_F(Waiting, ForAllWaitsForWhatAnotherThreadHasPutInTheSamePlaceMeanwhile) {
    int got = 0;
    const int sent = 7;
    MPI_Request request = receive(&got, 60);
    MPI_Status status = marked();
    Pending all = waitall(1, &request, &status);
    send_now(&sent, 60);
    while (process().engine->progress() > 0) {
    }
    EXPECT_TRUE(all.ended());
    expect_ok(wait(mpi::wait(&request, MPI_STATUS_IGNORE)));
    request = receive(&got, 61);
    EXPECT_FALSE(all.poll());
    send_now(&sent, 61);
    expect_ok(wait(std::move(all)));
    EXPECT_EQ(status.MPI_TAG, 61);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
}

TEST_F(Waiting, ForSomeReturnsAllThatAreComplete) {
    std::array<int, 3> got{};
    const int sent = 3;
    std::array<MPI_Request, 3> requests{receive(&got[0], 30), receive(&got[1], 31),
                                        receive(&got[2], 32)};
    send_now(&sent, 32);
    send_now(&sent, 30);
    int outcount = 0;
    std::array<int, 3> indices{};
    std::array<MPI_Status, 3> statuses{};
    expect_ok(wait(waitsome(3, requests.data(), &outcount, indices.data(), statuses.data())));
    ASSERT_EQ(outcount, 2);
    EXPECT_EQ(std::tuple(indices[0], indices[1]), std::tuple(0, 2));
    EXPECT_EQ(std::tuple(statuses[0].MPI_TAG, statuses[1].MPI_TAG), std::tuple(30, 32));
    send_now(&sent, 31);
    expect_ok(wait(mpi::wait(&requests[1], MPI_STATUS_IGNORE)));
}

TEST_F(Waiting, CanceledReceiveSaysSo) {
    int got = 0, cancelled = 0;
    MPI_Request request = receive(&got, 40);
    expect_ok(cancel(&request));
    MPI_Status status{};
    expect_ok(wait(mpi::wait(&request, &status)));
    expect_ok(test_cancelled(&status, &cancelled));
    EXPECT_EQ(cancelled, 1);
}

TEST_F(Waiting, FreedReceiveStillReceives) {
    int got = 0;
    const int sent = 8;
    MPI_Request request = receive(&got, 50);
    expect_ok(request_free(&request));
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    send_now(&sent, 50);
    int other = 0;
    MPI_Request second = receive(&other, 51);
    send_now(&sent, 51);
    expect_ok(wait(mpi::wait(&second, MPI_STATUS_IGNORE)));
    EXPECT_EQ(got, 8);
}

TEST_F(Waiting, ProcNullIsCompleteAtOnce) {
    int got = 1;
    MPI_Status status = marked();
    expect_ok(wait(recv(&got, 1, type(MPI_INT), MPI_PROC_NULL, 3, self(), &status)));
    EXPECT_EQ(std::tuple(status.MPI_SOURCE, status.MPI_TAG),
              std::tuple(MPI_PROC_NULL, MPI_ANY_TAG));
    MPI_Request request;
    int flag = 0;
    expect_ok(irecv(&got, 1, type(MPI_INT), MPI_PROC_NULL, 3, self(), &request));
    expect_ok(test(&request, &flag, &status));
    EXPECT_EQ(flag, 1);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQ(got, 1);
}

TEST_F(Waiting, MatchedProbeTakesTheMessageFromReceives) {
    const std::array<int, 2> sent{6, 7};
    MPI_Request sending, receiving;
    expect_ok(isend(sent.data(), 2, type(MPI_INT), 0, 60, self(), &sending));
    MPI_Message message;
    MPI_Status status{};
    expect_ok(wait(mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self(), &message, &status)));
    EXPECT_EQ(status.MPI_TAG, 60);
    int flag = 1;
    expect_ok(iprobe(MPI_ANY_SOURCE, 60, self(), &flag, &status));
    EXPECT_EQ(flag, 0);
    std::array<int, 2> got{};
    expect_ok(imrecv(got.data(), 2, type(MPI_INT), &message, &receiving));
    EXPECT_EQ(message, MPI_MESSAGE_NULL);
    std::array<MPI_Request, 2> both{sending, receiving};
    expect_ok(wait(waitall(2, both.data(), MPI_STATUSES_IGNORE)));
    EXPECT_EQ(got, sent);
    message = MPI_MESSAGE_NO_PROC;
    expect_ok(wait(mrecv(got.data(), 2, type(MPI_INT), &message, &status)));
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
}

TEST_F(Waiting, RequestHandlesRoundTripThroughIntegers) {
    int got = 0;
    MPI_Request request = receive(&got, 70);
    const int integer = request_toint(request);
    EXPECT_GE(integer, 4096);
    EXPECT_EQ(request_fromint(integer), request);
    EXPECT_EQ(request_toint(MPI_REQUEST_NULL), 0x180);
    EXPECT_EQ(request_fromint(0x180), MPI_REQUEST_NULL);
    expect_ok(cancel(&request));
    expect_ok(wait(mpi::wait(&request, MPI_STATUS_IGNORE)));
}

}  // namespace
}  // namespace gantry::mpi
