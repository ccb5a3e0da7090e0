// Fuzz target: patterns of the router, and the choice among them.
//
//   - A pattern that is accepted answers a path that is built from it, with the values that were put in.
//   - For any path, the tree chooses the pattern that a naive reader of all patterns chooses, and stores the same values.
//   - Neither the choice nor conflicts depend on the order in which patterns are added; the tree sees the conflicts that a
//     comparison of each pair sees.
//
// The input: a request line "METHOD PATH", then one pattern per line.
//
// Covers: http/route/pattern.cpp, http/route/route_tree.cpp, http/route/conflict.cpp
#include <tuza/http/h1/request_loop.h>
#include <tuza/http/route/pattern.h>
#include <tuza/http/route/route_tree.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <source_location>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using fuzz::expect;
using Kind = Pattern::Kind;
using Values = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t kPatternsMax = 8;

struct Known {
  std::string text;
  Pattern pattern;
};

std::optional<Pattern> parse(std::string_view text) {
  try {
    return Pattern::parse(text);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

// -- The naive reader.

std::string decoded(std::string_view segment) {
  std::string text;
  for (std::size_t i = 0; i < segment.size(); ++i) {
    if (is_percent_escape(segment, i)) {
      text += unescaped(segment, i);
      i += 2;
    } else {
      text += segment[i];
    }
  }
  return text;
}

// The values of the wildcards if the pattern matches the path.
std::optional<Values> match(const Pattern& pattern, std::string_view path) {
  Values values;
  std::string_view rest = path;
  for (const Pattern::Segment& segment : pattern.segments) {
    if (rest.empty()) return std::nullopt;
    if (segment.kind == Kind::kEnd) return rest == "/" ? std::optional(values) : std::nullopt;
    if (segment.kind == Kind::kRest) {
      if (!segment.text.empty()) values.emplace_back(segment.text, rest.substr(1));
      return values;
    }
    const std::size_t slash = std::min(rest.find('/', 1), rest.size());
    const std::string_view part = rest.substr(1, slash - 1);
    rest.remove_prefix(slash);
    if (part.empty()) return std::nullopt;
    if (segment.kind == Kind::kName) {
      values.emplace_back(segment.text, part);
    } else if (decoded(part) != segment.text) {
      return std::nullopt;
    }
  }
  if (!rest.empty()) return std::nullopt;
  return values;
}

// How well a pattern's method suits a request's: 0 is best; nullopt: not at all.
std::optional<int> method_rank(const Pattern& pattern, Method method) {
  if (!pattern.method) return 2;
  if (*pattern.method == method) return 0;
  if (*pattern.method == Method::kGet && method == Method::kHead) return 1;
  return std::nullopt;
}

// Whether `a` precedes `b`, if both match the same path.
bool precedes(const Pattern& a, const Pattern& b, Method method) {
  const auto kind = [](const Pattern& p, std::size_t i) { return p.segments[i].kind; };
  for (std::size_t i = 0; i < std::min(a.segments.size(), b.segments.size()); ++i) {
    if (kind(a, i) != kind(b, i)) return kind(a, i) < kind(b, i);
  }
  return *method_rank(a, method) < *method_rank(b, method);
}

const Known* choose(const std::vector<Known>& all, Method method, std::string_view path) {
  const Known* best = nullptr;
  for (const Known& known : all) {
    if (!known.pattern.host.empty()) continue;  // the request has none
    if (!method_rank(known.pattern, method) || !match(known.pattern, path)) continue;
    if (best == nullptr || precedes(known.pattern, best->pattern, method)) {
      expect(best == nullptr || !precedes(best->pattern, known.pattern, method),
             "precedence is antisymmetric", known.text);
      best = &known;
    }
  }
  return best;
}

// Whether the pattern ends in a slash, and matches `path` to that slash only.
bool ends_with(const Pattern& pattern, const std::string& path) {
  const Kind last = pattern.segments.back().kind;
  if (!pattern.host.empty() || (last != Kind::kEnd && last != Kind::kRest)) return false;
  return path.ends_with('/') &&
         std::ranges::count(path, '/') == static_cast<std::ptrdiff_t>(pattern.segments.size()) &&
         match(pattern, path);
}

bool wants_slash(const std::vector<Known>& all, Method method, const Known* best, std::string_view path) {
  const bool exact = best != nullptr && best->pattern.segments.back().kind != Kind::kRest;
  if (exact || path.ends_with('/')) return false;
  return std::ranges::any_of(all, [&](const Known& known) {
    return method_rank(known.pattern, method) && ends_with(known.pattern, std::string(path) + "/");
  });
}

// -- The tree.

// Its handlers tell which pattern was chosen.
class Tree {
 public:
  // False: the pattern conflicts with an earlier one.
  bool add(const Known& known) {
    try {
      tree_.add(
          known.text, [this, &known](Request&, ResponseWriter&) { chosen_ = &known; },
          std::source_location::current());
    } catch (const std::invalid_argument&) {
      return false;
    }
    return true;
  }
  struct Choice {
    const Known* known = nullptr;
    Values values = {};
    unsigned allowed = 0;
    bool wants_slash = false;
    bool operator==(const Choice&) const = default;
  };
  Choice find(Method method, std::string_view path, std::string_view host = "") {
    static ExchangeBuffers buffers;
    const RouteTree::Found found = tree_.find(method, host, path, buffers);
    if (found.slash_is_missing) return {.wants_slash = true};
    if (found.route == nullptr) return {nullptr, {}, found.allowed};
    // The handlers do not use their arguments, so there is no connection behind these.
    alignas(RequestLoop) std::array<std::byte, sizeof(RequestLoop)> nothing{};
    auto& loop = *reinterpret_cast<RequestLoop*>(nothing.data());
    Request request(loop);
    ResponseWriter response(loop);
    found.route->handler(request, response);
    Choice choice{chosen_, {}, 0};
    for (const auto& path_value : buffers.path_values) {
      choice.values.emplace_back(path_value.name, path_value.value);
    }
    return choice;
  }

 private:
  RouteTree tree_;
  const Known* chosen_ = nullptr;
};

// -- The promises.

std::string escaped(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

void check_alone(const Known& known) {
  std::string path;
  Values values;
  for (const Pattern::Segment& segment : known.pattern.segments) {
    const std::string part = segment.kind == Kind::kText   ? escaped(segment.text)
                             : segment.kind == Kind::kName ? "x" + std::to_string(values.size())
                             : segment.kind == Kind::kEnd  ? ""
                                                           : "y//z";
    path += '/' + part;
    if (segment.kind != Kind::kText && !segment.text.empty()) values.emplace_back(segment.text, part);
  }
  Tree tree;
  expect(tree.add(known), "a pattern that parses can be added", known.text);
  const Tree::Choice choice =
      tree.find(known.pattern.method.value_or(Method::kPatch), path, known.pattern.host);
  expect(choice.known == &known && choice.values == values, "a pattern answers a path that is built from it",
         known.text);
}

// Whether some request matches both, and neither path is narrower, segment by segment, nor a method decides between
// patterns of the same path.
bool conflict(const Pattern& a, const Pattern& b) {
  if (a.host != b.host) return false;
  const auto both_answer = [&](Method method) { return method_rank(a, method) && method_rank(b, method); };
  const auto methods = std::views::iota(0, kMethodCount);
  if (std::ranges::none_of(methods, [&](int i) { return both_answer(static_cast<Method>(i)); })) return false;
  bool a_narrower = false, b_narrower = false;
  for (std::size_t i = 0;; ++i) {
    const bool a_ends = i == a.segments.size(), b_ends = i == b.segments.size();
    if (a_ends && b_ends) break;
    if (a_ends || b_ends) return false;
    const Pattern::Segment &x = a.segments[i], &y = b.segments[i];
    if (x.kind == Kind::kRest || y.kind == Kind::kRest) {
      a_narrower = a_narrower || x.kind != Kind::kRest;
      b_narrower = b_narrower || y.kind != Kind::kRest;
      break;
    }
    if ((x.kind == Kind::kEnd) != (y.kind == Kind::kEnd)) return false;
    if (x.kind == Kind::kText && y.kind == Kind::kText && x.text != y.text) return false;
    a_narrower = a_narrower || x.kind < y.kind;
    b_narrower = b_narrower || y.kind < x.kind;
  }
  return a_narrower == b_narrower && (a_narrower || a.method == b.method);
}

void check_choice(const std::vector<Known>& all, Method method, std::string_view path) {
  Tree tree, backwards;
  for (const Known& known : all)
    expect(tree.add(known), "patterns of which one is narrower do not conflict", known.text);
  for (const Known& known : std::views::reverse(all)) {
    expect(backwards.add(known), "conflicts do not depend on the order", known.text);
  }
  const Tree::Choice choice = tree.find(method, path);
  expect(choice == backwards.find(method, path), "the choice does not depend on the order", path);
  const Known* best = choose(all, method, path);
  expect(choice.wants_slash == wants_slash(all, method, best, path), "a slash is missing where only it is",
         path);
  if (choice.wants_slash) return;
  expect(choice.known == best, "the tree chooses what a reader of all patterns chooses", path);
  if (best != nullptr) {
    expect(choice.values == *match(best->pattern, path), "the values are those parts of the path", path);
    return;
  }
  unsigned allowed = 0;
  for (int i = 0; i < kMethodCount; ++i) {
    if (choose(all, static_cast<Method>(i), path) != nullptr) allowed |= 1u << i;
  }
  expect(choice.allowed == allowed, "allowed are the methods that some pattern answers", path);
}

void check_patterns(std::string_view input) {
  const auto line = [&input] {
    const std::size_t end = std::min(input.find('\n'), input.size());
    const std::string_view taken = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
    return taken;
  };
  const std::string_view request = line();
  const std::size_t space = std::min(request.find(' '), request.size());
  const Method method = parse_method(request.substr(0, space)).value_or(Method::kGet);
  const std::string_view path = request.substr(std::min(space + 1, request.size()));

  std::vector<Known> all;
  all.reserve(kPatternsMax);
  while (!input.empty() && all.size() < kPatternsMax) {
    const std::string_view text = line();
    std::optional<Pattern> pattern = parse(text);
    if (!pattern) continue;
    const Known known{std::string(text), std::move(*pattern)};
    check_alone(known);
    const auto other_one =
        std::ranges::find_if(all, [&](const Known& other) { return conflict(known.pattern, other.pattern); });
    if (other_one == all.end()) {
      all.push_back(known);
      continue;
    }
    Tree one, other;
    expect(one.add(*other_one) && !one.add(known) && other.add(known) && !other.add(*other_one),
           "two patterns of which none is narrower conflict, in both orders", known.text);
  }
  if (path.starts_with('/')) check_choice(all, method, path);
}

}  // namespace
}  // namespace tuza::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::http::check_patterns({reinterpret_cast<const char*>(data), size});
  return 0;
}
