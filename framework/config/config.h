// The configuration of a program: the values that its file, its environment and its command line give to the keys of
// a schema.
//
// The sources are read in this order, and later ones take precedence: defaults, the file, TUZA_* variables of the
// environment, the command line. All problems of all sources are reported together, one line each:
//
//     hello.toml:3:http.idle_timeout: expected a duration from 1ms to 1d, such as "250ms", got the integer 75
//     TUZA_HTTP_LISTN: unknown setting; did you mean TUZA_HTTP_LISTEN?
//
// Thread-compatible: constant once loaded.
#pragma once

#include <tuza/framework/config/schema.h>

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::config {

struct Sources {
  std::string file;                                      // empty: none
  std::vector<std::string> environment;                  // NAME=VALUE
  std::vector<std::pair<std::string, std::string>> set;  // key, value as text; the last one of a key wins
  List listen;                                           // --listen; `set` takes precedence over it
};

// Each is "PLACE: what is wrong", without a line end.
using Problems = std::vector<std::string>;

class Config {
 public:
  // All keys have their defaults. The schema must outlive the Config.
  explicit Config(const Schema& schema);

  // The value of a key. The key must be in the schema.
  [[nodiscard]] const Value& value(std::string_view name) const { return entry(name).value; }
  [[nodiscard]] bool boolean(std::string_view name) const { return std::get<bool>(value(name)); }
  [[nodiscard]] std::int64_t number(std::string_view name) const {
    return std::get<std::int64_t>(value(name));
  }
  [[nodiscard]] const std::string& text(std::string_view name) const {
    return std::get<std::string>(value(name));
  }
  [[nodiscard]] const List& list(std::string_view name) const { return std::get<List>(value(name)); }
  // The source of the value: "default", "hello.toml:3", "TUZA_HTTP_LISTEN", "--set http.listen", "--listen".
  [[nodiscard]] const std::string& origin(std::string_view name) const { return entry(name).origin; }
  // The source and the name, for messages: "hello.toml:3:http.listen", "TUZA_HTTP_LISTEN", "--set http.listen",
  // "--listen (http.listen)", "http.listen (default)".
  [[nodiscard]] std::string place(std::string_view name) const;

  void set(std::string_view name, Value value, std::string origin);
  [[nodiscard]] const Schema& schema() const { return *schema_; }
  // The configuration as valid TOML: each key with its meaning, its range, its default and the origin of its value.
  [[nodiscard]] std::string to_toml() const;

 private:
  struct Entry {
    Value value;
    std::string origin;
  };
  [[nodiscard]] std::size_t index(std::string_view name) const;
  [[nodiscard]] const Entry& entry(std::string_view name) const { return entries_[index(name)]; }

  const Schema* schema_;
  std::vector<Entry> entries_;  // one per key of the schema
};

// The settings that the program has added to Tuza's, for --help: name, meaning, kind, range and default. Empty: none.
std::string help_of_own(const Schema& schema);

// Reads all sources. May block on the file.
std::expected<Config, Problems> load(const Schema& schema, const Sources& sources);

// Read one source each; they append their findings to `problems`.
void read_file(Config& config, const std::string& path, Problems& problems);
// The same for the content of a file; `path` is its name in messages. Does not block.
void read_toml_text(Config& config, const std::string& path, std::string_view text, Problems& problems);
void read_environment(Config& config, const std::vector<std::string>& environment, Problems& problems);
// Reads the value of a key given as text by the option or variable `origin`.
void read_text(Config& config, const Key& key, std::string_view text, const std::string& origin,
               Problems& problems);
// Checks for values that are valid individually but not in combination.
void check_together(const Config& config, Problems& problems);

}  // namespace tuza::config
