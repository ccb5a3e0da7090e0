// What middleware hands to the handlers of a request, and how long it lives.
#include <tuza/http/middleware.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/goroutine.h>

#include <cstdint>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class RequestValuesTest : public WithProcs {};
TUZA_WITH_PROCS(RequestValuesTest);

struct User {
  std::string name;
  bool operator==(const User&) const = default;
};

inline constexpr Key<User> kUser, kAuthor;
inline constexpr Key<int> kNumber;

// The values that live, and the names of those that have ended, in order. Handlers of several connections write it.
struct Trace {
  void add() {
    const std::scoped_lock lock(mutex);
    ++alive;
  }
  void end(char name) {
    const std::scoped_lock lock(mutex);
    --alive;
    if (name != 0) ended.push_back(name);
  }
  std::mutex mutex;
  int alive = 0;
  std::string ended;
};
class Traced {
 public:
  Traced(Trace& trace, char name) : trace_(&trace), name_(name) { trace.add(); }
  Traced(Traced&& other) noexcept : trace_(other.trace_), name_(std::exchange(other.name_, '\0')) {
    trace_->add();
  }
  Traced& operator=(Traced&& other) noexcept {
    name_ = std::exchange(other.name_, '\0');
    return *this;
  }
  ~Traced() { trace_->end(name_); }

 private:
  Trace* trace_;
  char name_;
};
inline constexpr Key<Traced> kFirst, kSecond;

TEST_P(RequestValuesTest, HandlersGetWhatMiddlewareHasSet) {
  run_with(GetParam(), [] {
    struct alignas(256) Wide {
      char bytes[300] = "wide";
    };
    static constexpr Key<Wide> kWide;
    static constexpr Key<std::unique_ptr<int>> kOwned;
    const auto authenticated = [](Handler next) -> Handler {
      return [next = std::move(next)](Request& req, ResponseWriter& res) {
        EXPECT_EQ(req.get(kUser), nullptr);
        EXPECT_EQ(req.set(kUser, {"ada"}), User{"ada"});
        req.set(kNumber, 7);
        req.set(kWide, Wide());
        req.set(kOwned, std::make_unique<int>(8));
        next(req, res);
      };
    };
    const auto handler = [](const Request& req, ResponseWriter& res) {
      ASSERT_NE(req.get(kUser), nullptr);
      EXPECT_EQ(req.get(kAuthor), nullptr) << "another key of the same type";
      EXPECT_EQ(*req.get(kNumber), 7);
      EXPECT_EQ(std::string_view(req.get(kWide)->bytes), "wide");
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(req.get(kWide)) % alignof(Wide), 0u);
      EXPECT_EQ(**req.get(kOwned), 8);
      res.text(req.get(kUser)->name);
    };
    TestServer server(with(handler, authenticated));
    EXPECT_EQ(fetch(server.address(), get("/")).body, "ada");
  });
}

TEST_P(RequestValuesTest, AKeyHasOneValueAndPointersToItStayValid) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      const User* const user = &req.set(kUser, {"ada"});
      req.set(kAuthor, {"mary"});
      for (int i = 0; i < 10'000; ++i)
        req.set(kUser, {"grace " + std::string(100, 'x')});  // no memory is kept
      EXPECT_EQ(user, req.get(kUser));
      EXPECT_TRUE(user->name.starts_with("grace"));
      req.get(kUser)->name = "changed";
      EXPECT_EQ(*user, User{"changed"});
      EXPECT_EQ(*req.get(kAuthor), User{"mary"});
      res.text("ok");
    });
    EXPECT_EQ(fetch(server.address(), get("/")).body, "ok");
  });
}

TEST_P(RequestValuesTest, TheNextRequestOfTheConnectionHasNone) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      res.text(req.get(kUser) == nullptr && req.get(kNumber) == nullptr ? "none" : "some");
      req.set(kUser, {std::string(5000, 'u')});
      req.set(kNumber, 1);
    });
    RawClient client(server.address());
    client.send(get("/") + get("/") + get("/"));
    for (const Response& r : client.read_responses(3)) EXPECT_EQ(r.body, "none");
    client.send(get("/"));
    EXPECT_EQ(client.read_responses(4).at(3).body, "none");
  });
}

TEST_P(RequestValuesTest, ValuesEndInReverseOrderHoweverTheHandlerEnds) {
  run_with(GetParam(), [] {
    Trace trace;
    {
      TestServer server([&](Request& req, ResponseWriter& res) {
        req.set(kFirst, Traced(trace, '1'));
        req.set(kSecond, Traced(trace, 'x'));
        req.set(kSecond, Traced(trace, '2'));
        if (req.path() == "/throws") throw std::runtime_error("on purpose");
        if (req.path() == "/exits") goexit();
        res.text("ok");
      });
      for (const char* path : {"/", "/throws", "/exits"}) fetch(server.address(), get(path));
    }
    EXPECT_EQ(trace.alive, 0);
    EXPECT_EQ(trace.ended, "212121");
  });
}

}  // namespace
}  // namespace tuza::http::testing
