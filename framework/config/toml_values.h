// Converts values of TOML to settings, and says what is wrong with those that are none.
//
// Thread-unsafe.
#pragma once

#include <tuza/framework/config/config.h>
#include <tuza/framework/config/toml_file.h>

#include <cstddef>
#include <optional>
#include <string>

namespace tuza::config {

class TomlValues {
 public:
  // `source` names the file, or, if `is_file` is false, the option or variable, in messages and as the origin of values.
  TomlValues(Config& config, std::string source, Problems& problems, bool is_file = true)
      : config_(config),
        schema_(config.schema()),
        source_(std::move(source)),
        problems_(problems),
        is_file_(is_file) {}

  // Sets all settings of a table. `prefix` is empty, or a section with its dot.
  void read(const TomlNode::Table& table, const std::string& prefix = {});
  // Sets one setting, or reports why its value cannot be used.
  void set(const Key& key, const TomlNode& node);

 private:
  [[nodiscard]] std::string place(std::size_t line) const {
    return is_file_ ? source_ + ":" + std::to_string(line) : source_;
  }
  void complain(std::size_t line, const std::string& key, const std::string& what);
  void unknown(const std::string& name, std::size_t line);
  std::nullopt_t refuse(const Key& key, const TomlNode& node);
  std::optional<Value> convert(const Key& key, const TomlNode& node);
  std::optional<Value> rows(const Key& key, const TomlNode& node);
  List row(const Key& key, const TomlNode::Table& table, std::size_t line);

  Config& config_;
  const Schema& schema_;
  const std::string source_;
  Problems& problems_;
  const bool is_file_;
};

}  // namespace tuza::config
