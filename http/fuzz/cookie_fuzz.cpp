// Fuzz target: the Cookie field, cookies that are set, and signed ones.
//
// The pairs are those of a reference. A cookie that may be set is found again in a Cookie field, whatever stands beside
// it, and its Set-Cookie field has no attribute that was not asked for. What verifies was signed.
//
// The input: length of a name, the name, then a value or a field.
//
// Covers: http/cookie.cpp http/cookie_signer.cpp http/wire/base64.cpp
#include <tuza/http/cookie.h>
#include <tuza/http/cookie_signer.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;
using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(std::string_view field) {
  Pairs pairs;
  for (HeaderField pair; (pair = detail::next_cookie(field)).name.data() != nullptr;)
    pairs.emplace_back(pair.name, pair.value);
  return pairs;
}

Pairs reference(std::string_view field) {
  Pairs pairs;
  std::string item;
  const auto end_item = [&] {
    const std::size_t equals = item.find('=');
    if (equals != std::string::npos) {
      std::string name(trim(std::string_view(item).substr(0, equals)));
      if (!name.empty()) pairs.emplace_back(std::move(name), trim(std::string_view(item).substr(equals + 1)));
    }
    item.clear();
  };
  for (const char c : field) {
    if (c == ';') {
      end_item();
    } else {
      item += c;
    }
  }
  end_item();
  return pairs;
}

void check_set(const std::string& name, const std::string& value) {
  std::string set;
  try {
    set = to_set_cookie({.name = name, .value = value, .secure = true});
  } catch (const std::invalid_argument&) {
    return;
  }
  expect(!has_control_char(set), "no control character is set", set);
  expect(std::ranges::count(set, ';') == 4, "no attribute is set that was not asked for", set);
  const Pairs found = pairs_of("a=b; " + name + "=" + value + "; c=d");
  expect(found == Pairs{{"a", "b"}, {name, value}, {"c", "d"}}, "what is set is found again", set);
}

void check_signed(const std::string& name, const std::string& text) {
  constexpr std::chrono::sys_seconds kEnd(std::chrono::seconds(1'000'000));
  const CookieSigner signer({std::string(32, 'k')}), other({std::string(32, 'o')});
  const std::string made = signer.sign(name, text, kEnd);
  const auto before = kEnd - std::chrono::seconds(1);
  expect(signer.verify(name, made, before) == text, "what is signed verifies", text);
  expect(!signer.verify(name, made, kEnd), "and ends", text);
  expect(!other.verify(name, made, before), "under its key only", text);
  expect(!signer.verify(name + "x", made, before), "and under its name only", text);
  expect(!signer.verify(name, text, before), "what is not signed does not verify", text);
}

void check_cookie(fuzz::Input input) {
  const std::size_t bytes = input.byte() % 16;
  std::string name;
  for (std::size_t i = 0; i < bytes; ++i) name += static_cast<char>(input.byte());
  const std::string rest(input.rest());
  expect(pairs_of(rest) == reference(rest), "the pairs are those of the reference", rest);
  check_set(name, rest);
  check_signed(name, rest);
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_cookie({data, size});
  return 0;
}
