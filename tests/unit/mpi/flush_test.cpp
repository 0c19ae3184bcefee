// SPDX-License-Identifier: BSD-3-Clause
//
// The end of a blocking call flushes the transports that hold messages back, and no other.
#include "device/none/none_device.hpp"
#include "job/singleton.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/pending.hpp"
#include "transport/self/self.hpp"

#include <gtest/gtest.h>

namespace gantry::mpi {
namespace {

using namespace transport;

// Reaches nobody; counts how often it is asked to let go.
class Holding final : public Transport {
  public:
    Holding(bool holds, int& flushes) : holds_(holds), flushes_(flushes) {}
    const char* name() const override { return "holding"; }
    PeerFacts facts(int) const override { return {}; }
    bool reaches(int) const override { return false; }
    Status publish(job::Job&) override { return success(); }
    Status open(job::Job&, Receiver&) override { return success(); }
    Task<Status> close(Executor&) override { co_return success(); }
    Status send(int, MessageKind, ConstSpan, ConstSpan) override { return no(); }
    Result<Region> register_memory(const Extent&) override { return no(); }
    void release_memory(const Region&) override {}
    RemoteKey key(const Region&) const override { return {}; }
    void put(int, int, const void*, Bytes, const Region&, const RemoteKey&, Bytes,
             Completion& done) override {
        done.complete(no());
    }
    int progress() override { return 0; }
    bool holds_back() const override { return holds_; }
    void flush() override { ++flushes_; }

  private:
    static Status no() { return failure(MPI_ERR_UNSUPPORTED_OPERATION, "not here"); }
    const bool holds_;
    int& flushes_;
};

Task<Status> nothing(Executor&) {
    co_return success();
}

Status wait_for(Engine& engine, Task<Status> task) {
    return wait(Pending(engine, std::move(task)));
}

TEST(Flush, AsksOnlyTransportsThatHoldMessagesBackAndOnlyWhileTheEngineRuns) {
    int quiet = 0, holding = 0;
    Parts parts;
    parts.config = std::make_unique<config::Config>();
    parts.clock = std::make_unique<SteadyClock>();
    parts.executor = std::make_unique<Executor>(*parts.clock);
    parts.job = std::make_unique<job::Singleton>();
    parts.device = std::make_unique<device::none::NoneDevice>();
    parts.transports.push_back(std::make_unique<self::SelfTransport>(0));
    parts.transports.push_back(std::make_unique<Holding>(false, quiet));
    parts.transports.push_back(std::make_unique<Holding>(true, holding));
    Engine engine(std::move(parts));
    engine.flush();
    EXPECT_EQ(holding, 0) << "not started";
    ASSERT_TRUE(wait_for(engine, engine.start(engine.executor())).ok());
    const int started = holding;
    ASSERT_TRUE(wait(Pending(success())).ok());
    ASSERT_TRUE(wait_for(engine, nothing(engine.executor())).ok());
    EXPECT_EQ(holding, started + 1);
    ASSERT_TRUE(wait_for(engine, engine.stop(engine.executor())).ok());
    const int stopped = holding;
    engine.flush();
    EXPECT_EQ(holding, stopped);
    EXPECT_EQ(quiet, 0);
}

}  // namespace
}  // namespace gantry::mpi
