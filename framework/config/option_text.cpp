// Reads a value given as text, on the command line or in the environment: plain, or as TOML.
//
//     --set a=10s    --set a=x,y    --set 'a=["x, y", "z"]'    --set 'a="x, y"'
//
// Plain text may begin with the same characters: "[::1]:80" is an address. So TOML is what cannot be meant otherwise.
#include <tuza/framework/config/config.h>
#include <tuza/framework/config/toml_values.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::config {
namespace {

// Whether text that begins with "[" is a list of TOML, and not one of plain items in brackets such as [::1]:80. The
// first item of TOML is in quotes, is missing, or ends with a comma.
bool is_list_of_toml(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks, 1);
  if (first == std::string_view::npos) return false;
  if (std::string_view("\"'[{]").find(text[first]) != std::string_view::npos) return true;
  const std::size_t end = text.find_first_of(",]", first);
  return end != std::string_view::npos && text[end] == ',';
}

bool is_toml(const Key& key, std::string_view text) {
  const char first = text.empty() ? ' ' : text.front();
  switch (key.type) {
    case Type::kTables: return first == '[' || first == '{';
    case Type::kList:
    case Type::kNetworks:
    case Type::kAddresses: return first == '"' || (first == '[' && is_list_of_toml(text));
    default: return first == '"';  // JSON and patterns in brackets are plain text
  }
}

}  // namespace

void read_text(Config& config, const Key& key, std::string_view text, const std::string& origin,
               Problems& problems) {
  if (!is_toml(key, text)) {
    if (std::optional<Value> value = parse_text(key, text))
      return config.set(key.name, std::move(*value), origin);
    problems.push_back(origin + ": expected " + expected(key) + ", got " + config::quoted(text));
    return;
  }
  // Items may stand without the brackets, as they may in plain text.
  const bool several = key.type == Type::kList || key.type == Type::kAddresses ||
                       key.type == Type::kNetworks || key.type == Type::kTables;
  const bool bare = several && text.front() != '[';
  const auto parsed = parse_toml("value = " + (bare ? "[" + std::string(text) + "]" : std::string(text)));
  const std::string given = ", in " + config::quoted(text);
  if (!parsed) {
    problems.push_back(origin + ": expected TOML, got: " + parsed.error().text + given);
    return;
  }
  const auto& table = std::get<TomlNode::Table>(parsed->value);
  if (table.size() != 1) {
    problems.push_back(origin + ": expected one value of TOML, got several" + given);
    return;
  }
  const std::size_t before = problems.size();
  TomlValues(config, origin, problems, false).set(key, table.front().node);
  for (std::size_t i = before; i < problems.size(); ++i) problems[i] += given;
}

}  // namespace tuza::config
