#include <tuza/sched/rt/report/frame_name.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace tuza::rt {
namespace {

constexpr std::size_t kLong = 160;
constexpr std::size_t kShortBracket = 24;  // what is in such brackets stays

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kReplaced{{
    {"std::__cxx11::", "std::"},
    {"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
    {"std::basic_string_view<char, std::char_traits<char> >", "std::string_view"},
    {"(anonymous namespace)::", ""},
    {"{anonymous}::", ""},
}};
// Template arguments that programs hardly ever write.
constexpr std::array<std::string_view, 8> kDefaults{
    ", std::allocator<", ", std::char_traits<", ", std::default_delete<", ", std::less<",
    ", std::hash<",      ", std::equal_to<",    ", std::ratio<1l, 1l>",   ", 18446744073709551615ul"};

// The C++ runtime's are what leads from a throw to its report; the last two are netpoll's: what is below the calls of programs.
// "std::enable_if" is all that is left of the name of such a function when it was cut off in the type that it returns.
constexpr std::array<std::string_view, 21> kPlumbing{"tuza::rt::",
                                                     "tuza::detail::",
                                                     "tuza::sys::",
                                                     "std::__invoke",
                                                     "std::invoke",
                                                     "std::__apply_impl",
                                                     "std::apply",
                                                     "std::move_only_function",
                                                     "std::_M",
                                                     "std::_Function_ha",
                                                     "std::function",
                                                     "std::enable_if",
                                                     "std::terminate",
                                                     "__cxxabiv1::",
                                                     "__cxa_",
                                                     "_Unwind_",
                                                     "__gxx_personality",
                                                     "goroutine_main",
                                                     "tuza_context",
                                                     "tuza::net::WaitSlot::",
                                                     "tuza::net::Descriptor::"};

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// A bracket that is part of an operator's name, or of "->", is none.
bool is_bracket(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  constexpr std::string_view kOperator = "operator";
  if (text[at] == '(') return !before.ends_with(kOperator) || text.substr(at, 2) != "()";
  if (text[at] == ')') return !before.ends_with("operator(");
  return !before.ends_with(kOperator) && !before.ends_with("operator<") && !before.ends_with("operator>") &&
         !before.ends_with('-');
}

// The partner of the bracket at `open`; npos if the name was cut off.
std::size_t partner(std::string_view text, std::size_t open) {
  const char begin = text[open], end = begin == '<' ? '>' : ')';
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] != begin && text[at] != end) continue;
    if (at != open && !is_bracket(text, at)) continue;
    depth += text[at] == begin ? 1 : -1;
    if (depth == 0) return at;
  }
  return std::string_view::npos;
}

void drop_defaults(std::string& text) {
  for (const std::string_view one : kDefaults) {
    for (std::size_t at = 0; (at = text.find(one, at)) != std::string::npos;) {
      std::size_t end = at + one.size();
      if (one.ends_with('<')) {
        end = partner(text, end - 1);
        if (end == std::string::npos) return;
        ++end;
      }
      text.erase(at, end - at);
    }
  }
  replace_all(text, " >", ">");
}

void name_results(std::string& text) {
  constexpr std::string_view kExpected = "std::expected<", kError = ", tuza::Error";
  for (std::size_t at = 0; (at = text.find(kExpected, at)) != std::string::npos; ++at) {
    const std::size_t end = partner(text, at + kExpected.size() - 1);
    if (end == std::string::npos) return;
    const std::string_view inside(text.data() + at + kExpected.size(), end - at - kExpected.size());
    if (!inside.ends_with(kError)) continue;
    text = text.substr(0, at) + "tuza::Result<" +
           std::string(inside.substr(0, inside.size() - kError.size())) + text.substr(end);
  }
}

// Replaces what is in the outermost brackets of this kind.
void collapse(std::string& text, char open) {
  for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos; ++at) {
    if (!is_bracket(text, at)) continue;
    const std::size_t end = std::min(partner(text, at), text.size());
    if (end - at > kShortBracket) text.replace(at + 1, end - at - 1, "...");
    at = std::min(partner(text, at), text.size() - 1);
  }
}

// The first argument of the template `before`, which ends in '<', perhaps behind the type that it returns. Empty if `text` is
// another name.
std::string_view first_argument(std::string_view text, std::string_view before) {
  const std::size_t name = text.find(before);
  if (name == std::string_view::npos || (name != 0 && text.substr(0, name) != "void ")) return {};
  const std::size_t open = name + before.size() - 1;
  const std::size_t close = partner(text, open);
  if (close == std::string_view::npos) return {};
  std::size_t end = open + 1;
  for (int depth = 0; end < close && (depth > 0 || text[end] != ','); ++end) {
    if (!is_bracket(text, end)) continue;
    depth += text[end] == '<' || text[end] == '(' ? 1 : text[end] == '>' || text[end] == ')' ? -1 : 0;
  }
  while (text[end - 1] == ' ') --end;
  return text.substr(open + 1, end - open - 1);
}

// Without template arguments, and without the type that is returned.
std::string qualified_name(std::string_view text) {
  std::string bare;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '<' && is_bracket(text, at)) {
      at = partner(text, at);
      if (at == std::string_view::npos) break;
      continue;
    }
    if (text[at] == '(' && is_bracket(text, at)) break;  // the parameters
    bare += text[at];
  }
  const std::size_t name = bare.rfind(' ');
  const bool is_operator =
      name != std::string::npos && std::string_view(bare).substr(0, name).ends_with("operator");
  return name == std::string::npos || is_operator ? bare : bare.substr(name + 1);
}

}  // namespace

std::string short_name(std::string_view demangled) {
  std::string text(demangled);
  for (const auto& [from, to] : kReplaced) replace_all(text, from, to);
  drop_defaults(text);
  name_results(text);
  if (text.size() > kLong) collapse(text, '(');
  if (text.size() > kLong) collapse(text, '<');
  return text;
}

bool is_plumbing(std::string_view demangled) {
  std::string text(demangled);
  for (const auto& [from, to] : kReplaced) replace_all(text, from, to);
  const std::string name = qualified_name(text);
  return std::ranges::any_of(kPlumbing,
                             [&name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_cxx_runtime(std::string_view file) {
  constexpr std::array<std::string_view, 4> kFiles{"libstdc++.so", "libgcc_s.so", "libc++.so",
                                                   "libc++abi.so"};
  return std::ranges::any_of(kFiles, [file](std::string_view one) { return file.starts_with(one); });
}

std::string_view goroutine_function(std::string_view demangled) {
  std::string_view function = first_argument(demangled, "tuza::rt::run_closure<");
  if (const std::string_view bound = first_argument(function, "tuza::rt::BoundCall<"); !bound.empty())
    function = bound;
  const bool is_class = function.ends_with('}') || function.ends_with('>') || !function.contains("*)(");
  return is_class && !is_plumbing(function) ? function : std::string_view();
}

}  // namespace tuza::rt
