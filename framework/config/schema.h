// The schema: all keys that a program knows. Tuza's own keys are in builtin.cpp; a program adds more.
//
// Thread-compatible: the schema is complete before the program starts to run.
#pragma once

#include <tuza/framework/config/value.h>

#include <string>
#include <string_view>
#include <vector>

namespace tuza::config {

class Schema {
 public:
  // Throws std::invalid_argument, which names the key, if the key has no section, if it exists already (the same name,
  // or the same environment variable), or if its default is not a valid value.
  void add(Key key);
  // Changes a default for this program, given as text. Throws std::invalid_argument.
  void set_default(std::string_view name, std::string_view text);

  // Null if there is no such key.
  [[nodiscard]] const Key* find(std::string_view name) const;
  // In the order of addition, with the keys of a section kept together.
  [[nodiscard]] const std::vector<Key>& keys() const { return keys_; }
  // Whether any key is in the section `name`, such as "http".
  [[nodiscard]] bool has_section(std::string_view name) const;

 private:
  std::vector<Key> keys_;
};

// The section of a key: "http" for "http.listen".
std::string_view section_of(std::string_view name);
// The environment variable of a key: "TUZA_HTTP_LISTEN" for "http.listen".
std::string variable_of(std::string_view name);

Schema builtin_schema();

}  // namespace tuza::config
