// Fuzz target: application/x-www-form-urlencoded.
//
// The items are those of a reference; the limit of their number is exact; encoded, they are found again.
//
// The input: the text.
//
// Covers: http/values.cpp
#include <tuza/http/values.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;
using Items = std::vector<std::pair<std::string, std::string>>;

bool is_hex(char c) { return std::string_view("0123456789abcdefABCDEF").find(c) != std::string_view::npos; }

Items reference(std::string_view text) {
  Items items;
  std::string name, value;
  bool in_value = false, any = false;
  const auto end_item = [&] {
    if (any) items.emplace_back(std::exchange(name, {}), std::exchange(value, {}));
    in_value = any = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      end_item();
      continue;
    }
    any = true;
    char c = text[i];
    if (c == '=' && !std::exchange(in_value, in_value || c == '=')) continue;
    if (c == '+') c = ' ';
    if (c == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) {
      c = static_cast<char>(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    }
    (in_value ? value : name) += c;
  }
  end_item();
  return items;
}

Items items_of(const Values& values) {
  Items items;
  for (const auto& [name, value] : values) items.emplace_back(name, value);
  return items;
}

void check_form(std::string_view text) {
  const Items expected = reference(text);
  const std::optional<Values> values = Values::parse(text, expected.size());
  expect(values && items_of(*values) == expected, "the items are those of the reference", text);
  if (!expected.empty()) expect(!Values::parse(text, expected.size() - 1), "the limit is exact", text);
  const std::string encoded = values->encode();
  expect(items_of(Values::parse(encoded, expected.size()).value()) == expected,
         "what is encoded is found again", encoded);
  for (const auto& [name, value] : expected) expect(values->has(name), "each name is found", name);
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_form({reinterpret_cast<const char*>(data), size});
  return 0;
}
