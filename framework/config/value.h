// The values of a configuration: their types, their spelling, and their constraints.
//
// A duration is spelled "250ms", "10s", "5m", "1h", "2d"; a size "64KiB", "8MiB", "512B". A number without a unit is
// refused for both, so that a reader of the file does not have to guess the unit.
//
// Thread-safe: pure functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tuza::config {

enum class Type {
  kBool,       // bool
  kInt,        // std::int64_t
  kDuration,   // std::int64_t, milliseconds
  kSize,       // std::int64_t, bytes
  kString,     // std::string
  kLine,       // std::string without control characters
  kAddress,    // std::string: host:port or unix:/path; may be empty if the default is empty
  kAddresses,  // List of addresses; a single one may be given without the list
  kNetworks,   // List of networks, which may be empty; a single one may be given without the list
  kPath,       // std::string: a file, which need not exist; may be empty if the default is empty
  kChoice,     // std::string: one of Key::choices
  kList,       // List
  kTables,     // Rows: an array of tables with the fields Key::choices, all of which are required
};

using List = std::vector<std::string>;
using Rows = std::vector<List>;
using Value = std::variant<bool, std::int64_t, std::string, List, Rows>;

// One entry of the schema: a key with its type, default and constraints.
struct Key {
  std::string name = {};  // "http.listen"; the part before the last dot is the section
  Type type = Type::kString;
  Value by_default = {};  // the default
  std::int64_t min = 0;   // for kInt, kDuration, kSize
  std::int64_t max = 0;
  List choices = {};      // for kChoice, kTables
  std::string unit = {};  // for kInt; other types imply their unit
  std::string doc = {};   // one line
  bool reload = false;    // SIGHUP applies a new value
};

// Parses a value given as text, from the environment or the command line; commas separate the items of a list. Empty
// if the text is not a valid value of the key.
std::optional<Value> parse_text(const Key& key, std::string_view text);
// Checks a value that already has the right type: ranges, addresses and choices.
bool is_valid(const Key& key, const Value& value);

// Describes the valid values for messages: "a duration from 1ms to 1h, such as \"10s\"".
std::string expected(const Key& key);
// The value in TOML syntax.
std::string to_toml(const Key& key, const Value& value);
std::string quoted(std::string_view text);
// Replaces control characters with spaces: a line end would end a TOML comment, or make two lines of a message.
std::string one_line(std::string text);
// The range of the key, "1ms to 1h", or its choices; empty if it has neither.
std::string range(const Key& key);

}  // namespace tuza::config
