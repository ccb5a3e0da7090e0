// Reads the two sources other than the command line: the file and the environment.
#include <tuza/framework/config/config.h>
#include <tuza/framework/config/suggest.h>
#include <tuza/framework/config/toml_file.h>

#include <algorithm>
#include <array>
#include <map>

namespace tuza::config {
namespace {

class FileReader {
 public:
  FileReader(Config& config, std::string path, Problems& problems)
      : config_(config), schema_(config.schema()), path_(std::move(path)), problems_(problems) {}

  // `prefix` is empty, or a section with its dot.
  void read(const TomlNode::Table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string full = prefix + name;
      if (const Key* key = schema_.find(full)) {
        set(*key, node);
      } else if (!schema_.has_section(full)) {
        unknown(full, node.line);
      } else if (const auto* section = std::get_if<TomlNode::Table>(&node.value)) {
        read(*section, full + ".");
      } else {
        complain(node.line, full, "expected a section, [" + full + "], got " + describe(node));
      }
    }
  }

 private:
  std::string place(std::size_t line) const { return path_ + ":" + std::to_string(line); }
  void complain(std::size_t line, const std::string& key, const std::string& what) {
    problems_.push_back(place(line) + ":" + key + ": " + what);
  }

  void unknown(const std::string& name, std::size_t line) {
    std::vector<std::string_view> known;
    for (const Key& key : schema_.keys()) {
      known.push_back(key.name);
      known.push_back(section_of(key.name));
    }
    const std::string_view meant = nearest(name, known);
    complain(line, name,
             "unknown setting" + (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
  }

  void set(const Key& key, const TomlNode& node) {
    std::optional<Value> value = key.type == Type::kTables ? rows(key, node) : convert(key, node);
    if (!value) return;
    if (is_valid(key, *value)) {
      config_.set(key.name, std::move(*value), place(node.line));
    } else {
      refuse(key, node);
    }
  }
  std::nullopt_t refuse(const Key& key, const TomlNode& node) {
    complain(node.line, key.name, "expected " + expected(key) + ", got " + describe(node));
    return std::nullopt;
  }

  std::optional<Value> convert(const Key& key, const TomlNode& node) {
    if (const auto* boolean = std::get_if<bool>(&node.value); boolean != nullptr && key.type == Type::kBool) {
      return *boolean;
    }
    if (const auto* number = std::get_if<std::int64_t>(&node.value);
        number != nullptr && key.type == Type::kInt) {
      return *number;
    }
    if (const auto* text = std::get_if<std::string>(&node.value)) {
      // TOML has its own syntax for booleans, numbers and lists, so a string is refused for them.
      const bool spelled = key.type != Type::kBool && key.type != Type::kInt && key.type != Type::kList;
      if (!spelled) return refuse(key, node);
      if (key.type == Type::kAddresses) return List{*text};
      std::optional<Value> value = parse_text(key, *text);
      if (!value) return refuse(key, node);
      return value;
    }
    const auto* items = std::get_if<TomlNode::Array>(&node.value);
    if (items == nullptr || (key.type != Type::kAddresses && key.type != Type::kList))
      return refuse(key, node);
    List list;
    for (const TomlNode& item : *items) {
      const auto* text = std::get_if<std::string>(&item.value);
      if (text == nullptr || !is_valid(key, List{*text})) return refuse(key, item);
      list.push_back(*text);
    }
    return list;
  }

  std::optional<Value> rows(const Key& key, const TomlNode& node) {
    const auto* tables = std::get_if<TomlNode::Array>(&node.value);
    if (tables == nullptr) return refuse(key, node);
    Rows result;
    for (std::size_t i = 0; i < tables->size(); ++i) {
      const auto* table = std::get_if<TomlNode::Table>(&(*tables)[i].value);
      if (table == nullptr) return refuse(key, (*tables)[i]);
      List& row = result.emplace_back(key.choices.size());
      for (const auto& [name, field] : *table) {
        const auto column = std::ranges::find(key.choices, name);
        const auto* text = std::get_if<std::string>(&field.value);
        if (column == key.choices.end()) {
          unknown(key.name + "." + name, field.line);
        } else if (text == nullptr || text->empty()) {
          complain(field.line, key.name + "." + name, "expected the path of a file, got " + describe(field));
        } else {
          row[static_cast<std::size_t>(column - key.choices.begin())] = *text;
        }
      }
      for (std::size_t c = 0; c < row.size(); ++c) {
        const auto given = [&](const auto& field) { return field.first == key.choices[c]; };
        if (std::ranges::none_of(*table, given)) {
          complain((*tables)[i].line, key.name,
                   "expected " + expected(key) + ", got one without " + key.choices[c]);
        }
      }
    }
    return result;
  }

  Config& config_;
  const Schema& schema_;
  const std::string path_;
  Problems& problems_;
};

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

void read_file(Config& config, const std::string& path, Problems& problems) {
  const std::expected<TomlNode, TomlError> file = read_toml(path);
  if (file) {
    FileReader(config, path, problems).read(std::get<TomlNode::Table>(file->value), "");
  } else if (file.error().line == 0) {
    problems.push_back(path + ": expected a file that can be read, got: " + file.error().text);
  } else {
    problems.push_back(path + ":" + std::to_string(file.error().line) + ":" +
                       std::to_string(file.error().column) + ": expected TOML, got: " + file.error().text);
  }
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
      if (std::optional<Value> value = parse_text(*found->second, text)) {
        config.set(found->second->name, std::move(*value), found->first);
      } else {
        problems.push_back(found->first + ": expected " + expected(*found->second) + ", got " +
                           config::quoted(text));
      }
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
