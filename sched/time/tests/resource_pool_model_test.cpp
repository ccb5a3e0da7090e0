// ResourcePool against a model: random operations, one after another, on a clock that stands still between them.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/resource_pool.h>
#include <tuza/sched/time/tests/resource_factory.h>

#include <chrono>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class ResourcePoolModel : public WithProcs {};
TUZA_WITH_PROCS(ResourcePoolModel);

// The model tracks who holds each resource, who waits, and which resources are idle.
class Modelled {
 public:
  explicit Modelled(std::uint64_t seed) : random_(seed), pool_(options()), clients_(kClients) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      step();
      clock_.settle();
      compare();
      if (::testing::Test::HasFailure()) FAIL() << "operation " << i;
    }
    factory_.fails = false;
    for (Client& client : clients_) client.cancel();
    clock_.settle();
    for (Client& client : clients_) client.lease.reset();
    pool_.close();
    EXPECT_EQ(factory_.alive, 0);
    EXPECT_EQ(pool_.stats().opened, pool_.stats().closed());
    group_.wait();
  }

 private:
  static constexpr std::size_t kClients = 9, kPlaces = 3, kIdle = 2;
  static constexpr auto kIdleTimeout = 10s;
  enum class State { kNone, kWaits, kHas };
  struct Client {
    std::optional<Things::Lease> lease;
    Canceller cancel;
    int ended = 0;  // calls that have returned
    // The model's:
    State state = State::kNone;
    int id = 0;
    int must_have_ended = 0;
  };
  struct Idle {
    int id;
    Context::TimePoint until;
  };

  Things::Options options() {
    auto options = factory_.options({.open_max = kPlaces, .idle_max = kIdle, .idle_timeout = kIdleTimeout});
    options.check = [this](const Context&, Factory::Thing&) { return !check_fails_; };
    return options;
  }

  void step() {
    Client& client = clients_[random_.below(kClients)];
    switch (random_.below(8)) {
      case 0: factory_.fails = random_.below(4) == 0; return;
      case 1: check_fails_ = random_.below(4) == 0; return;
      case 2: return advance(std::chrono::seconds(random_.below(12)));
      default: break;
    }
    if (client.state == State::kNone) return begin(client);
    if (client.state == State::kWaits) {
      if (random_.below(2) == 0) give_up(client);
      return;
    }
    client.state = State::kNone;
    if (random_.below(4) == 0) {
      model_free_place();
      client.lease->discard();
    } else {
      model_give_back(client.id);
    }
    client.lease.reset();
  }

  void begin(Client& client) {
    model_acquire(client);
    auto [ctx, cancel] = with_cancel(kAlways);
    client.cancel = std::move(cancel);
    group_.go([this, &client, ctx = ctx] {
      Result<Things::Lease> lease = pool_.acquire(ctx);
      if (lease) client.lease.emplace(*std::move(lease));
      ++client.ended;
    });
  }

  void give_up(Client& client) {
    std::erase(waiting_, &client);
    client.state = State::kNone;
    ++client.must_have_ended;
    client.cancel();
  }

  void advance(std::chrono::seconds time) {
    clock_.advance(time);
    const Context::TimePoint now = clock_.now();
    open_ -= static_cast<int>(std::erase_if(idle_, [now](const Idle& idle) { return idle.until <= now; }));
  }

  void model_acquire(Client& client) {
    if (!idle_.empty()) {
      const int id = idle_.back().id;
      idle_.pop_back();
      return model_serve(client, id);
    }
    if (open_ < static_cast<int>(kPlaces)) {
      ++open_;
      return model_serve(client, 0);
    }
    client.state = State::kWaits;
    waiting_.push_back(&client);
  }
  // `id` 0: a place without a resource.
  void model_serve(Client& client, int id) {
    ++client.must_have_ended;
    if (id != 0 && !check_fails_) {
      client.state = State::kHas;
      client.id = id;
    } else if (!factory_.fails) {
      client.state = State::kHas;
      client.id = ++last_id_;
    } else {
      client.state = State::kNone;
      model_free_place();
    }
  }
  void model_free_place() {
    if (waiting_.empty()) {
      --open_;
      return;
    }
    Client& first = *waiting_.front();
    waiting_.pop_front();
    model_serve(first, 0);
  }
  void model_give_back(int id) {
    if (!waiting_.empty()) {
      Client& first = *waiting_.front();
      waiting_.pop_front();
      model_serve(first, id);
    } else if (idle_.size() >= kIdle) {
      --open_;
    } else {
      idle_.push_back({id, clock_.now() + kIdleTimeout});
    }
  }

  void compare() {
    for (Client& client : clients_) {
      EXPECT_EQ(client.ended, client.must_have_ended);
      ASSERT_EQ(client.lease.has_value(), client.state == State::kHas);
      EXPECT_EQ(client.lease ? (**client.lease).id : 0, client.state == State::kHas ? client.id : 0);
    }
    const ResourceStats stats = pool_.stats();
    EXPECT_EQ(stats.open, static_cast<std::size_t>(open_));
    EXPECT_EQ(stats.idle, idle_.size());
    EXPECT_EQ(stats.in_use, static_cast<std::size_t>(open_) - idle_.size());
    EXPECT_EQ(stats.waiting, waiting_.size());
    EXPECT_EQ(stats.opened - stats.closed(), stats.open);
    EXPECT_EQ(factory_.alive, open_);
    EXPECT_EQ(factory_.last, last_id_);
  }

  FakeClock clock_;
  Random random_;
  Factory factory_;
  bool check_fails_ = false;
  Things pool_;
  std::vector<Client> clients_;
  WaitGroup group_;
  // The model.
  int open_ = 0, last_id_ = 0;
  std::vector<Idle> idle_;
  std::deque<Client*> waiting_;
};

TEST_P(ResourcePoolModel, DoesWhatItsModelDoes) {
  run_with(GetParam(), [] {
    std::random_device device;
    for (int round = 0; round < scaled(40) && !HasFailure(); ++round) {
      const std::uint64_t seed = device();
      Modelled(seed).run(400);
      EXPECT_FALSE(HasFailure()) << "seed " << seed;
    }
  });
}

}  // namespace
}  // namespace tuza
