// Reads the two sources other than the command line: the file and the environment.
#include <tuza/framework/config/config.h>
#include <tuza/framework/config/suggest.h>
#include <tuza/framework/config/toml_file.h>
#include <tuza/framework/config/toml_values.h>

#include <algorithm>
#include <array>
#include <map>

namespace tuza::config {
namespace {

void apply(Config& config, const std::string& path, const std::expected<TomlNode, TomlError>& file,
           Problems& problems) {
  if (file) {
    TomlValues(config, path, problems).read(std::get<TomlNode::Table>(file->value));
  } else if (file.error().line == 0) {
    problems.push_back(path + ": expected a file that can be read, got: " + file.error().text);
  } else {
    problems.push_back(path + ":" + std::to_string(file.error().line) + ":" +
                       std::to_string(file.error().column) + ": expected TOML, got: " + file.error().text);
  }
}

// Variables with our prefix that are not settings: they belong to the runtime, the tests and the load tests.
constexpr std::array<std::string_view, 11> kNotOurs{
    "TUZA_DEBUG",      "TUZA_MAXPROCS",   "TUZA_SLICE_MS",     "TUZA_EARLY_HANDOFF_US",
    "TUZA_LANE_EXTRA", "TUZA_CHAOS_SEED", "TUZA_TEST_SEED",    "TUZA_PREEMPT_SIGNAL",
    "TUZA_EMULATOR",   "TUZA_EMULATED",   "TUZA_CHAOS_HANDOFF"};

// Kubernetes adds the address of each Service to the environment: a Service named tuza-http causes
// TUZA_HTTP_SERVICE_HOST, TUZA_HTTP_PORT_80_TCP_ADDR and so on.
bool is_of_kubernetes(std::string_view name) {
  return name.ends_with("_PORT") || name.find("_SERVICE_") != std::string_view::npos ||
         name.find("_PORT_") != std::string_view::npos;
}

}  // namespace

void read_toml_text(Config& config, const std::string& path, std::string_view text, Problems& problems) {
  apply(config, path, parse_toml(text), problems);
}

void read_file(Config& config, const std::string& path, Problems& problems) {
  apply(config, path, read_toml(path), problems);
}

void read_environment(Config& config, const std::vector<std::string>& environment, Problems& problems) {
  std::map<std::string, const Key*, std::less<>> variables;
  std::map<std::string, std::string, std::less<>> sections;
  for (const Key& key : config.schema().keys()) {
    variables.emplace(variable_of(key.name), &key);
    sections.emplace(variable_of(section_of(key.name)) + "_", "");
  }
  std::vector<std::string_view> known(kNotOurs.begin(), kNotOurs.end());
  for (const auto& [name, key] : variables) known.push_back(name);
  for (const std::string& line : environment) {
    const std::string_view name = std::string_view(line).substr(0, line.find('='));
    if (!name.starts_with("TUZA_") || std::ranges::find(kNotOurs, name) != kNotOurs.end()) continue;
    if (const auto found = variables.find(name); found != variables.end()) {
      const std::string text = line.substr(std::min(name.size() + 1, line.size()));
      read_text(config, *found->second, text, found->first, problems);
      continue;
    }
    const std::string_view meant = nearest(name, known);
    const bool of_section =
        std::ranges::any_of(sections, [&](const auto& s) { return name.starts_with(s.first); });
    const bool a_slip = !meant.empty() && distance(name, meant) <= 2;
    if (is_of_kubernetes(name) || (!of_section && !a_slip)) continue;
    problems.push_back(std::string(name) + ": unknown setting" +
                       (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
  }
}

}  // namespace tuza::config
