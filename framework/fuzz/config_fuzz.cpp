// Fuzz target: the configuration file.
//
//   - Any text gives a configuration, or problems. A problem is one line, and names a line of the text.
//   - A configuration without problems is printed as TOML that gives the same configuration without problems.
//
// The input: the text of the file.
//
// Covers: framework/config/config.cpp, framework/config/print.cpp, framework/config/sources.cpp,
//   framework/config/suggest.cpp, framework/config/toml_file.cpp, framework/config/units.cpp, framework/config/value.cpp
#include <tuza/framework/config/config.h>
#include <tuza/sched/fuzz/fuzz.h>

#include <algorithm>
#include <charconv>

namespace tuza::config {
namespace {

using fuzz::expect;

const std::string kName = "conf.toml";

void check_problem(std::string_view problem, std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  expect(std::ranges::none_of(problem, is_control), "a problem is one line without control characters",
         problem);
  expect(problem.starts_with(kName + ":"), "a problem names the file", problem);
  const std::string_view place = problem.substr(kName.size() + 1);
  std::size_t line = 0;
  const auto [end, error] = std::from_chars(place.data(), place.data() + place.size(), line);
  expect(error == std::errc() && *end == ':', "a problem names a line", problem);
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
  expect(line >= 1 && line <= lines, "the line of a problem exists", problem);
}

void check_config(std::string_view text) {
  static const Schema schema = builtin_schema();
  Config config(schema);
  Problems problems;
  read_toml_text(config, kName, text, problems);
  for (const std::string& problem : problems) check_problem(problem, text);
  if (!problems.empty()) return;
  for (const Key& key : schema.keys()) {
    expect(is_valid(key, config.value(key.name)), "accepted values are valid", key.name);
  }
  const std::string printed = config.to_toml();
  Config again(schema);
  read_toml_text(again, kName, printed, problems);
  expect(problems.empty(), "what is printed is accepted", problems.empty() ? "" : problems.front());
  for (const Key& key : schema.keys()) {
    expect(again.value(key.name) == config.value(key.name), "what is printed means the same", printed);
  }
}

}  // namespace
}  // namespace tuza::config

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tuza::config::check_config({reinterpret_cast<const char*>(data), size});
  return 0;
}
