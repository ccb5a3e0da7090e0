// The values that a configuration holds: what they are, how they are spelled, what they must be.
//
// A duration is spelled "250ms", "10s", "5m", "1h", "2d"; a size "64KiB", "8MiB", "512B". Numbers without a
// unit are refused for both: whoever reads the file should not have to guess.
//
// Thread-safe: functions of their arguments.
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
  kAddress,    // std::string: host:port, unix:/path; may be empty if the default is
  kAddresses,  // List of them; one may stand alone
  kPath,       // std::string: a file, which need not be there
  kChoice,     // std::string: one of Key::choices
  kList,       // List
  kTables,     // Rows: an array of tables with the fields Key::choices, all of them needed
};

using List = std::vector<std::string>;
using Rows = std::vector<List>;
using Value = std::variant<bool, std::int64_t, std::string, List, Rows>;

// One line of the schema.
struct Key {
  std::string name = {};  // "http.listen"; what stands before the last dot is its section
  Type type = Type::kString;
  Value standard = {};   // the default
  std::int64_t min = 0;  // of kInt, kDuration, kSize
  std::int64_t max = 0;
  List choices = {};      // of kChoice, kTables
  std::string unit = {};  // of kInt; of the others the type says it
  std::string doc = {};   // one line
  bool reload = false;    // SIGHUP applies a new value
};

// A value as text, from the environment or the command line; a list is separated by commas. Nothing if it is
// not what the key must be.
std::optional<Value> parse_text(const Key& key, std::string_view text);
// The same for what is already of the right form; ranges, addresses and choices are looked at.
bool is_valid(const Key& key, const Value& value);

// "a duration from 1ms to 1h, such as \"10s\""
std::string expected(const Key& key);
// As it stands in a TOML file.
std::string to_toml(const Key& key, const Value& value);
std::string quoted(std::string_view text);
// "1ms to 1h"; empty where there is none.
std::string range(const Key& key);

}  // namespace tuza::config
