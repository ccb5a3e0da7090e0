// Replaces the system's resolver in the test program, for chosen names; it asks the system for all others.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tuza::net::testing {

// Holds queries up, as name servers do that do not answer. Thread-safe.
class ResolverGate {
 public:
  // From now on no query waits. Call it before the end of a test: nothing else ends the queries.
  void open();
  // How many queries wait at this moment.
  [[nodiscard]] int waiting();

  // For the resolver. Blocks the thread until the gate is open.
  void pass();

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
  int waiting_ = 0;
};

struct ResolverAnswer {
  int code = 0;                                  // EAI_AGAIN and others; 0: `addresses`
  std::vector<std::string> addresses = {};       // in this order; none of the family asked for: EAI_NONAME
  std::shared_ptr<ResolverGate> gate = nullptr;  // to be passed before; null: none
  bool no_memory = false;                        // throws std::bad_alloc
};

// While it exists, getaddrinfo() answers so. One at a time. It may be
// destroyed while queries wait at a gate; not thread-safe against other queries under way.
class FakeResolver {
 public:
  explicit FakeResolver(std::map<std::string, ResolverAnswer> answers);
  ~FakeResolver();
  FakeResolver(const FakeResolver&) = delete;
  FakeResolver& operator=(const FakeResolver&) = delete;
};

}  // namespace tuza::net::testing
