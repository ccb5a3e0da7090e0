#include <tuza/framework/config/toml_file.h>

#include <tuza/framework/config/value.h>
#include <tuza/netpoll/file.h>

// toml++ 3.3 asserts about some wrong texts, such as "[+a", that its parser then reports as it should. With NDEBUG, Clang
// would assume that the assertions hold.
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <tuple>

namespace tuza::config {
namespace {

TomlNode convert(const toml::node& node);

TomlNode::Value convert_value(const toml::node& node) {
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* string = node.as_string()) return string->get();
  if (const toml::array* array = node.as_array()) {
    TomlNode::Array items;
    for (const toml::node& item : *array) items.push_back(convert(item));
    return items;
  }
  if (const toml::table* table = node.as_table()) {
    TomlNode::Table fields;
    for (const auto& [key, field] : *table) {
      fields.push_back({.name = std::string(key.str()), .node = convert(field)});
      // A value gets the line of its key. A table keeps its own position, which may be that of its first key.
      if (!field.is_table()) fields.back().node.line = key.source().begin.line;
    }
    std::ranges::sort(fields, {}, [](const auto& field) { return std::tie(field.node.line, field.name); });
    return fields;
  }
  return TomlNode::Other{node.is_date() ? "a date" : node.is_time() ? "a time" : "a date and time"};
}

TomlNode convert(const toml::node& node) {
  return {.value = convert_value(node), .line = node.source().begin.line};
}

// The position of the closing quote of the string that begins at `at`, or of the last character of its line.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == quote) return i;
    if (text[i] == '\n') return i - 1;
    if (text[i] == '\\' && quote == '"') ++i;
  }
  return text.size();
}

// Returns the line of the first key with too many parts, or 0. The parser and convert() recurse once for each part of
// a dotted key; the parser itself limits all other nesting. A key is any run of parts and dots, wherever it stands.
unsigned line_of_endless_key(std::string_view text) {
  constexpr std::size_t kPartsMax = 64;
  unsigned line = 1;
  std::size_t parts = 0;
  bool after_part = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool quoted = c == '"' || c == '\'';
    if (quoted) i = end_of_string(text, i);
    if (quoted || std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-') {
      after_part = true;
    } else if (c == '.') {
      parts = after_part ? parts + 1 : 0;
      after_part = false;
      if (parts >= kPartsMax) return line;
    } else if (c != ' ' && c != '\t') {
      parts = 0;
      after_part = false;
      line += c == '\n' ? 1 : 0;
    }
  }
  return 0;
}

}  // namespace

std::expected<TomlNode, TomlError> parse_toml(std::string_view text) {
  if (const unsigned line = line_of_endless_key(text); line > 0) {
    return std::unexpected(TomlError{.line = line, .column = 1, .text = "a key with too many parts"});
  }
  try {
    return convert(toml::parse(text));
  } catch (const toml::parse_error& error) {
    return std::unexpected(TomlError{.line = error.source().begin.line,
                                     .column = error.source().begin.column,
                                     .text = one_line(std::string(error.description()))});
  }
}

std::expected<TomlNode, TomlError> read_toml(const std::string& path) {
  const auto fail = [](const Error& error) {
    return std::unexpected(TomlError{.text = error.code().message()});
  };
  Result<File> file = File::open(path);
  if (!file) return fail(file.error());
  const Result<std::string> text = file->read_all();
  if (!text) return fail(text.error());
  return parse_toml(*text);
}

std::string describe(const TomlNode& node) {
  struct Visitor {
    std::string operator()(bool b) const { return b ? "true" : "false"; }
    std::string operator()(std::int64_t i) const { return "the integer " + std::to_string(i); }
    std::string operator()(double d) const {
      char text[64];
      std::snprintf(text, sizeof text, "the number %g", d);
      return text;
    }
    std::string operator()(const std::string& s) const { return "the string " + config::quoted(s); }
    std::string operator()(const TomlNode::Array&) const { return "an array"; }
    std::string operator()(const TomlNode::Table&) const { return "a table"; }
    std::string operator()(const TomlNode::Other& other) const { return other.kind; }
  };
  return std::visit(Visitor{}, node.value);
}

}  // namespace tuza::config
