// SPDX-License-Identifier: BSD-3-Clause
//
// Tasks, completions, scopes and mailboxes: a parent goes on when its child has ended, a scope joins.
#include "base/mailbox.hpp"
#include "base/program_call.hpp"
#include "base/scope.hpp"
#include "base/yield.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace gantry {
namespace {

class StillClock final : public Clock {
  public:
    Nanoseconds now() const override { return 0; }
};

struct TaskTest : ::testing::Test {
    StillClock clock;
    Executor executor{clock};
    void run() {
        while (executor.has_ready())
            executor.run_ready();
    }
};

Task<Status> wait_for(Executor&, Completion& completion, int* resumed) {
    Status status = co_await completion;
    ++*resumed;
    co_return status;
}

Task<Status> parent_of(Executor& executor, Completion& completion, std::vector<int>* steps) {
    steps->push_back(1);
    int resumed = 0;
    Status status = co_await wait_for(executor, completion, &resumed);
    steps->push_back(2);
    co_return status;
}

TEST_F(TaskTest, RunsToItsFirstWaitWhenStarted) {
    Completion completion(executor);
    std::vector<int> steps;
    Task<Status> task = parent_of(executor, completion, &steps);
    EXPECT_TRUE(steps.empty());
    task.start();
    EXPECT_EQ(steps, (std::vector<int>{1}));
    completion.complete(success());
    run();
    EXPECT_TRUE(task.done());
}

void count_call(const void* calls) {
    ++*static_cast<int*>(const_cast<void*>(calls));
}

Task<Status> calls_the_program(Executor& executor, Completion& completion, int* calls) {
    Status status = co_await completion;
    ProgramCall first(executor, count_call, calls);
    co_await first;
    ProgramCall second(executor, count_call, calls);
    co_await second;
    co_return status;
}

TEST_F(TaskTest, CallsFunctionsOfTheProgramItself) {
    Completion completion(executor);
    int calls = 0;
    Task<Status> task = calls_the_program(executor, completion, &calls);
    task.start();
    completion.complete(success());
    run();
    EXPECT_EQ(calls, 2);
    EXPECT_FALSE(executor.has_program_work());
    EXPECT_TRUE(task.done());
}

TEST_F(TaskTest, WaitsForFunctionsOfTheProgramInTheBackground) {
    Completion completion(executor);
    int calls = 0;
    Task<Status> task = calls_the_program(executor, completion, &calls);
    task.start();
    completion.complete(success());
    executor.set_background(true);
    run();
    executor.set_background(false);
    EXPECT_EQ(calls, 0);
    EXPECT_FALSE(executor.has_ready());
    ASSERT_TRUE(executor.has_program_work());
    ProgramWork& work = executor.take_program_work();
    work.call();
    EXPECT_EQ(calls, 1);
    executor.make_ready(work);
    run();  // the second one is called at once
    EXPECT_EQ(calls, 2);
    EXPECT_TRUE(task.done());
}

TEST_F(TaskTest, WaitsForFunctionsOfTheProgramBesideOtherThreads) {
    Completion completion(executor);
    int calls = 0;
    executor.set_several_threads(true);
    Task<Status> task = calls_the_program(executor, completion, &calls);
    task.start();
    completion.complete(success());
    for (int call = 0; call < 2; ++call) {
        run();
        EXPECT_EQ(calls, call);
        ASSERT_TRUE(executor.has_program_work());
        ProgramWork& work = executor.take_program_work();
        work.call();
        executor.make_ready(work);
    }
    run();
    EXPECT_TRUE(task.done());
}

TEST_F(TaskTest, GoesOnOnlyInRunReadyNotInsideComplete) {
    Completion completion(executor);
    int resumed = 0;
    Task<Status> task = wait_for(executor, completion, &resumed);
    task.start();
    completion.complete(success());
    EXPECT_EQ(resumed, 0);
    executor.run_ready();
    EXPECT_EQ(resumed, 1);
    EXPECT_TRUE(task.take().ok());
}

TEST_F(TaskTest, CompletionThatCameFirstIsNotWaitedFor) {
    Completion completion(executor);
    completion.complete(failure(MPI_ERR_OTHER, "copy refused"));
    int resumed = 0;
    Task<Status> task = wait_for(executor, completion, &resumed);
    task.start();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(task.take().text(), "copy refused");
}

Task<Status> deep(Executor& executor, int depth, Completion& bottom) {
    if (depth == 0) {
        Status status = co_await bottom;
        co_return status;
    }
    Status status = co_await deep(executor, depth - 1, bottom);
    co_return status;
}

TEST_F(TaskTest, DeepChainsUnwindThroughTheQueueWithoutGrowingTheStack) {
    Completion bottom(executor);
    Task<Status> task = deep(executor, 2000, bottom);
    task.start();
    bottom.complete(success());
    executor.run_ready();
    EXPECT_TRUE(task.done()) << "all that waited for one another goes on in one turn";
}

TEST_F(TaskTest, FramesGoBackToThePool) {
    {
        Completion completion(executor);
        completion.complete(success());
        int resumed = 0;
        Task<Status> task = wait_for(executor, completion, &resumed);
        task.start();
        EXPECT_EQ(executor.live_frames(), 1u);
    }
    EXPECT_EQ(executor.live_frames(), 0u);
}

Task<Status> join_children(Executor& executor,
                           std::vector<std::unique_ptr<Completion>>* completions, int* resumed,
                           bool* cancelled) {
    Scope scope(executor);
    for (auto& completion : *completions)
        scope.spawn(wait_for(executor, *completion, resumed));
    Status status = co_await scope.join(executor);
    *cancelled = scope.cancelled();
    co_return status;
}

struct ScopeTest : TaskTest {
    std::vector<std::unique_ptr<Completion>> completions;
    void make(int count) {
        for (int i = 0; i < count; ++i)
            completions.push_back(std::make_unique<Completion>(executor));
    }
};

TEST_F(ScopeTest, JoinsChildrenThatEndInAnyOrder) {
    make(3);
    int resumed = 0;
    bool cancelled = false;
    Task<Status> task = join_children(executor, &completions, &resumed, &cancelled);
    task.start();
    for (int index : {2, 0, 1}) {
        EXPECT_FALSE(task.done());
        completions[static_cast<std::size_t>(index)]->complete(success());
        run();
    }
    ASSERT_TRUE(task.done());
    EXPECT_TRUE(task.take().ok());
    EXPECT_EQ(resumed, 3);
}

TEST_F(ScopeTest, KeepsTheFirstFailureAndStillWaitsForEveryone) {
    make(3);
    int resumed = 0;
    bool cancelled = false;
    Task<Status> task = join_children(executor, &completions, &resumed, &cancelled);
    task.start();
    completions[1]->complete(failure(MPI_ERR_OTHER, "first"));
    run();
    EXPECT_FALSE(task.done()) << "a scope always joins: the other children still use its frame";
    completions[0]->complete(failure(MPI_ERR_OTHER, "second"));
    completions[2]->complete(success());
    run();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(task.take().text(), "first");
    EXPECT_TRUE(cancelled);
}

Task<Status> take_three(Executor&, Mailbox<int>& mailbox, std::vector<int>* taken) {
    for (int i = 0; i < 3; ++i) {
        Result<int> item = co_await mailbox.next();
        if (!item.ok()) co_return item.status();
        taken->push_back(*item);
    }
    co_return success();
}

TEST_F(TaskTest, MailboxGivesItemsInOrderBeforeAndAfterTheyAreAwaited) {
    Mailbox<int> mailbox(executor);
    std::vector<int> taken;
    mailbox.push(1);
    Task<Status> task = take_three(executor, mailbox, &taken);
    task.start();
    mailbox.push(2);
    mailbox.push(3);
    run();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(taken, (std::vector<int>{1, 2, 3}));
}

TEST_F(TaskTest, ClosedMailboxGivesWhatItHasAndThenTheFailure) {
    Mailbox<int> mailbox(executor);
    std::vector<int> taken;
    Task<Status> task = take_three(executor, mailbox, &taken);
    task.start();
    mailbox.push(7);
    mailbox.close(failure(MPI_ERR_OTHER, "peer is gone"));
    run();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(taken, (std::vector<int>{7}));
    EXPECT_EQ(task.take().text(), "peer is gone");
}

Task<Status> yield_times(Executor& executor, int times, int* rounds) {
    for (int i = 0; i < times; ++i) {
        ++*rounds;
        co_await Yield(executor);
    }
    co_return success();
}

TEST_F(TaskTest, YieldWaitsForTheNextRoundOfProgress) {
    int rounds = 0;
    Task<Status> task = yield_times(executor, 3, &rounds);
    task.start();
    EXPECT_EQ(rounds, 1);
    executor.run_ready();
    EXPECT_EQ(rounds, 2) << "one round of run_ready resumes a yielding task once";
    run();
    EXPECT_TRUE(task.done());
}

}  // namespace
}  // namespace gantry
