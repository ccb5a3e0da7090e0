// The schema: every key a program knows. Those of Tuza are in builtin.cpp; a program adds its own.
//
// Thread-compatible: filled before the program begins to run.
#pragma once

#include <tuza/framework/config/value.h>

#include <string>
#include <string_view>
#include <vector>

namespace tuza::config {

class Schema {
 public:
  // Throws std::invalid_argument, naming the key: no section, there already (also as a variable of the
  // environment), or a default that it would refuse itself.
  void add(Key key);
  // Another default for this program, as text. Throws std::invalid_argument.
  void set_default(std::string_view name, std::string_view text);

  // Null if there is none.
  [[nodiscard]] const Key* find(std::string_view name) const;
  // In the order they were added, keys of a section together.
  [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }
  // Whether "http" begins names.
  [[nodiscard]] bool has_section(std::string_view name) const;

 private:
  std::vector<Key> keys_;
};

// "http"
std::string_view section_of(std::string_view name);
// "TUZA_HTTP_LISTEN"
std::string variable_of(std::string_view name);

Schema builtin_schema();

}  // namespace tuza::config
