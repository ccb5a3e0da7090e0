// ClientPool against a model: random operations, one after another, on a clock that stands still between them, with connections
// that their servers close at any time.
#include <tuza/http/client/pool.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/testing.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/fake_clock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::FakeClock;
using tuza::testing::run_with;
using tuza::testing::WithProcs;
using Lease = ClientPool::Lease;
using Idle = ClientPool::Idle;

class ClientPoolModel : public WithProcs {};
TUZA_WITH_PROCS(ClientPoolModel);

constexpr ClientPool::Limits kLimits{
    .per_origin = 3, .in_all = 5, .idle_per_origin = 2, .idle_in_all = 3, .idle_timeout = 10s};
constexpr std::size_t kClients = 10;
const char* const kServer = "10.0.0.1:80";
constexpr std::array kNames{"a", "b", "c"};

// What the pool does, without goroutines: connections are numbers, in the order in which they were made.
class Model {
 public:
  struct Client {
    std::size_t origin = 0;
    bool waits = false;
    int has = 0;  // a connection
  };
  std::array<Client, kClients> clients;
  int made = 0;
  std::map<int, bool> alive;  // those that the client has open; false: its server has closed it

  [[nodiscard]] std::size_t open() const { return alive.size(); }
  [[nodiscard]] std::size_t idle() const { return idle_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

  void take(Client& client, std::size_t origin) {
    client.origin = origin;
    for (;;) {
      const int id = take_idle(origin);
      if (id == 0) break;
      if (alive.at(id)) return void(client.has = id);
      end(id);
    }
    if (!has_place(origin) && open_[origin] < kLimits.per_origin && !idle_.empty()) close(idle_.front().id);
    if (has_place(origin)) return make(client);
    client.waits = true;
    waiting_.push_back(&client);
  }
  void give_up(Client& client) {
    client.waits = false;
    std::erase(waiting_, &client);
  }
  void keep(Client& client, net::TimePoint now) {
    const int id = std::exchange(client.has, 0);
    if (first_needs_place(client.origin)) return end(id);
    idle_.push_back({id, client.origin, now + kLimits.idle_timeout});
    serve_one();
    while (idle_of(client.origin) > kLimits.idle_per_origin) close(oldest_of(client.origin));
    while (idle_.size() > kLimits.idle_in_all) close(idle_.front().id);
  }
  void drop(Client& client) { end(std::exchange(client.has, 0)); }
  void advance_to(net::TimePoint now) {
    while (!idle_.empty() && idle_.front().until <= now) close(idle_.front().id);
  }

 private:
  struct Kept {
    int id;
    std::size_t origin;
    net::TimePoint until;
  };

  [[nodiscard]] bool has_place(std::size_t origin) const {
    return open_[origin] < kLimits.per_origin && open() < kLimits.in_all;
  }
  void make(Client& client) {
    client.has = ++made;
    alive[made] = true;
    origins_[made] = client.origin;
    ++open_[client.origin];
  }
  void close(int id) {
    std::erase_if(idle_, [id](const Kept& kept) { return kept.id == id; });
    alive.erase(id);
    --open_[origins_.at(id)];
  }
  void end(int id) {
    close(id);
    serve_one();
  }
  void serve_one() {
    for (Client* client : waiting_) {
      if (const int id = take_idle(client->origin); id != 0) {
        client->has = id;
        if (!alive.at(id)) {  // the place stays
          close(id);
          make(*client);
        }
      } else if (has_place(client->origin)) {
        make(*client);
      } else {
        continue;
      }
      return give_up(*client);
    }
  }
  [[nodiscard]] bool first_needs_place(std::size_t origin) const {
    for (const Client* client : waiting_) {
      if (client->origin == origin) return false;
      if (open_[client->origin] < kLimits.per_origin) return true;
    }
    return false;
  }
  int take_idle(std::size_t origin) {
    for (auto at = idle_.rbegin(); at != idle_.rend(); ++at) {
      if (at->origin != origin) continue;
      const int id = at->id;
      idle_.erase(std::next(at).base());
      return id;
    }
    return 0;
  }
  [[nodiscard]] std::size_t idle_of(std::size_t origin) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(idle_, [&](const Kept& kept) { return kept.origin == origin; }));
  }
  [[nodiscard]] int oldest_of(std::size_t origin) const {
    return std::ranges::find_if(idle_, [&](const Kept& kept) { return kept.origin == origin; })->id;
  }

  std::array<std::size_t, kNames.size()> open_{};
  std::map<int, std::size_t> origins_;
  std::deque<Kept> idle_;  // the oldest first
  std::deque<Client*> waiting_;
};

class Modelled {
 public:
  explicit Modelled(std::uint64_t seed) : random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      step();
      clock_.settle();
      compare();
      if (::testing::Test::HasFailure()) FAIL() << "operation " << i;
    }
    for (Caller& caller : callers_) caller.cancel();
    clock_.settle();
    for (Caller& caller : callers_) caller.lease.reset();
    pool_->close();
    group_.wait();
    const ClientPool::Counts counts = pool_->counts();
    EXPECT_EQ(counts.open + counts.idle + counts.waiting, 0u);
    for (auto& [id, server] : servers_) EXPECT_FALSE(is_open(server)) << "connection " << id;
  }

 private:
  struct Caller {
    std::optional<Lease> lease;
    Canceller cancel;
  };

  void step() {
    const std::size_t who = random_.below(static_cast<std::uint32_t>(kClients));
    Model::Client& client = model_.clients[who];
    if (random_.below(6) == 0) {
      clock_.advance(std::chrono::seconds(random_.below(12)));
      return model_.advance_to(clock_.now());
    }
    if (random_.below(6) == 0) return lose_a_server();
    if (client.waits) {
      if (random_.below(2) != 0) return;
      model_.give_up(client);
      callers_[who].cancel();
    } else if (client.has == 0) {
      model_.take(client, random_.below(static_cast<std::uint32_t>(kNames.size())));
      take(callers_[who], kNames[client.origin]);
    } else if (random_.below(4) == 0) {
      model_.drop(client);
      callers_[who].lease.reset();
    } else {
      model_.keep(client, clock_.now());
      callers_[who].lease->keep();
      callers_[who].lease.reset();
    }
  }

  void lose_a_server() {
    if (model_.alive.empty()) return;
    auto at = model_.alive.begin();
    std::advance(at, random_.below(static_cast<std::uint32_t>(model_.alive.size())));
    at->second = false;
    servers_.at(at->first).close();
  }

  void take(Caller& caller, const char* origin) {
    auto [ctx, cancel] = with_cancel(Context::background());
    caller.cancel = std::move(cancel);
    group_.go([this, &caller, origin, ctx = ctx] {
      Result<Lease> lease = pool_->take(ctx, {.authority = origin}, Idle::kAsked);
      if (!lease) return;
      if (!lease->has_conn()) lease->set_conn(dial(), false);
      caller.lease.emplace(*std::move(lease));
    });
  }
  // One goroutine at a time gets a place, so the numbers are those of the model.
  net::Conn dial() {
    net::Conn conn = network_.dial(kServer).value();
    servers_.emplace(++made_, listener_.accept().value());
    numbers_[conn.local_endpoint().value()] = made_;
    return conn;
  }
  static bool is_open(net::Conn& server) {
    std::array<char, 1> byte{};
    const Result<std::size_t> n = server.peek(byte);
    return !n && n.error().is(std::errc::operation_would_block);
  }

  void compare() {
    for (std::size_t who = 0; who < kClients; ++who) {
      const std::optional<Lease>& lease = callers_[who].lease;
      const int has = lease ? numbers_.at(const_cast<Lease&>(*lease).conn().local_endpoint().value()) : 0;
      EXPECT_EQ(has, model_.clients[who].has) << "client " << who;
    }
    const ClientPool::Counts counts = pool_->counts();
    EXPECT_EQ(counts.open, model_.open());
    EXPECT_EQ(counts.idle, model_.idle());
    EXPECT_EQ(counts.waiting, model_.waiting());
    EXPECT_EQ(made_, model_.made);
    for (auto& [id, server] : servers_) {
      const auto known = model_.alive.find(id);
      EXPECT_EQ(is_open(server), known != model_.alive.end() && known->second) << "connection " << id;
    }
  }

  FakeClock clock_;
  tuza::testing::Random random_;
  net::testing::MemoryNetwork network_;
  net::Listener listener_ = network_.listen(kServer).value();
  const std::shared_ptr<ClientPool> pool_ = std::make_shared<ClientPool>(kLimits);
  std::array<Caller, kClients> callers_;
  std::map<int, net::Conn> servers_;
  std::map<net::Endpoint, int> numbers_;
  int made_ = 0;
  WaitGroup group_;
  Model model_;
};

TEST_P(ClientPoolModel, DoesWhatItsModelDoes) {
  run_with(GetParam(), [] {
    std::random_device device;
    for (int round = 0; round < tuza::testing::scaled(20) && !HasFailure(); ++round) {
      const std::uint64_t seed = device();
      Modelled(seed).run(300);
      EXPECT_FALSE(HasFailure()) << "seed " << seed;
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
