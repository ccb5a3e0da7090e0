// Replaces the system's resolver in the test program, for chosen names; it asks the system for all others.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tuza::net::testing {

struct ResolverAnswer {
  int code = 0;                             // EAI_AGAIN and others; 0: `addresses`
  std::vector<std::string> addresses = {};  // in this order; none of the family asked for: EAI_NONAME
};

// While it exists, getaddrinfo() answers so. One at a time; not thread-safe against queries under way.
class FakeResolver {
 public:
  explicit FakeResolver(std::map<std::string, ResolverAnswer> answers);
  ~FakeResolver();
  FakeResolver(const FakeResolver&) = delete;
  FakeResolver& operator=(const FakeResolver&) = delete;
};

}  // namespace tuza::net::testing
