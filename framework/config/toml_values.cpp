#include <tuza/framework/config/toml_values.h>

#include <tuza/framework/config/suggest.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::config {

void TomlValues::read(const TomlNode::Table& table, const std::string& prefix) {
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

void TomlValues::complain(std::size_t line, const std::string& key, const std::string& what) {
  // The quoted names of TOML can contain line ends.
  const std::string name = one_line(key) == key ? key : config::quoted(key);
  // An option and a variable name their setting themselves, but not the field of a table.
  const bool says_name = !is_file_ && schema_.find(key) != nullptr;
  problems_.push_back(place(line) + (says_name ? "" : (is_file_ ? ":" : ": ") + name) + ": " + what);
}

void TomlValues::unknown(const std::string& name, std::size_t line) {
  std::vector<std::string_view> known;
  for (const Key& key : schema_.keys()) {
    known.push_back(key.name);
    known.push_back(section_of(key.name));
  }
  const std::string_view meant = nearest(name, known);
  complain(line, name,
           "unknown setting" + (meant.empty() ? "" : "; did you mean " + std::string(meant) + "?"));
}

void TomlValues::set(const Key& key, const TomlNode& node) {
  std::optional<Value> value = key.type == Type::kTables ? rows(key, node) : convert(key, node);
  if (!value) return;
  if (is_valid(key, *value)) {
    config_.set(key.name, std::move(*value), place(node.line));
  } else {
    refuse(key, node);
  }
}

std::nullopt_t TomlValues::refuse(const Key& key, const TomlNode& node) {
  complain(node.line, key.name, "expected " + expected(key) + ", got " + describe(node));
  return std::nullopt;
}

std::optional<Value> TomlValues::convert(const Key& key, const TomlNode& node) {
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
    if (key.type == Type::kNetworks && is_valid(key, List{*text})) return List{*text};
    std::optional<Value> value = parse_text(key, *text);
    if (!value) return refuse(key, node);
    return value;
  }
  const auto* items = std::get_if<TomlNode::Array>(&node.value);
  const bool is_list = key.type == Type::kAddresses || key.type == Type::kNetworks || key.type == Type::kList;
  if (items == nullptr || !is_list) return refuse(key, node);
  List list;
  for (const TomlNode& item : *items) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (text == nullptr || !is_valid(key, List{*text})) return refuse(key, item);
    list.push_back(*text);
  }
  return list;
}

std::optional<Value> TomlValues::rows(const Key& key, const TomlNode& node) {
  const auto* tables = std::get_if<TomlNode::Array>(&node.value);
  if (tables == nullptr) return refuse(key, node);
  Rows result;
  const std::size_t before = problems_.size();
  for (const TomlNode& item : *tables) {
    const auto* table = std::get_if<TomlNode::Table>(&item.value);
    if (table == nullptr) return refuse(key, item);
    result.push_back(row(key, *table, item.line));
  }
  if (problems_.size() > before) return std::nullopt;
  return result;
}

List TomlValues::row(const Key& key, const TomlNode::Table& table, std::size_t line) {
  List row(key.choices.size());
  for (const auto& [name, field] : table) {
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
  for (const std::string& choice : key.choices) {
    if (std::ranges::none_of(table, [&](const auto& field) { return field.name == choice; })) {
      complain(line, key.name, "expected " + expected(key) + ", got one without " + choice);
    }
  }
  return row;
}

}  // namespace tuza::config
