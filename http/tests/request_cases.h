// The cases of requests.txt; the format is described there.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tuza::http::testing {

struct RequestCase {
  enum class Expect { kAccept, kReject, kEither };

  std::string name;
  std::string rfc;
  std::string bytes;
  Expect expect = Expect::kAccept;
  int accepted = 1;            // "accept N", "either N"
  std::vector<int> also_good;  // "status S"
  bool must_close = false;     // "close"
  int good_first = 0;          // "after N"
  bool may_stay_open = false;  // "open"
  bool to_head = false;        // "head"
  std::string outcome;         // "outcome REGEX"
  std::vector<std::size_t> splits;
  std::optional<std::string> echo;
  std::string without_header, without_body;
};

// Where requests.txt stands in the source tree.
const char* request_cases_file();

std::vector<RequestCase> load_request_cases();

}  // namespace tuza::http::testing
