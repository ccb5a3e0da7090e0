// Reads a TOML file into plain values with their lines; toml_file.cpp is the only file that includes toml++.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tuza::config {

struct TomlNode {
  using Array = std::vector<TomlNode>;
  struct Field;
  using Table = std::vector<Field>;  // in the order of the file
  struct Other {                     // dates and times
    std::string kind;
  };
  using Value = std::variant<bool, std::int64_t, double, std::string, Array, Table, Other>;
  Value value;
  std::size_t line = 0;
};

struct TomlNode::Field {
  std::string name;
  TomlNode node;
};

struct TomlError {
  std::size_t line = 0;  // 0: the file could not be read
  std::size_t column = 0;
  std::string text;
};

// May block on the file.
std::expected<TomlNode, TomlError> read_toml(const std::string& path);
std::expected<TomlNode, TomlError> parse_toml(std::string_view text);

// Describes a value for messages: `the integer 75`, `the string "75"`, `a table`.
std::string describe(const TomlNode& node);

}  // namespace tuza::config
