#include <tuza/framework/config/schema.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tuza::config {
namespace {

[[noreturn]] void refuse(std::string_view name, const std::string& why) {
  throw std::invalid_argument("setting " + std::string(name) + ": " + why);
}

bool is_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  };
  return std::ranges::all_of(name, allowed) && name.find("..") == std::string_view::npos &&
         !name.starts_with('.') && !name.ends_with('.');
}

}  // namespace

std::string_view section_of(std::string_view name) {
  return name.substr(0, std::min(name.rfind('.'), name.size()));
}

std::string variable_of(std::string_view name) {
  std::string variable = "TUZA_";
  for (const char c : name) {
    variable += c == '.' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return variable;
}

void Schema::add(Key key) {
  if (!is_name(key.name) || key.name.find('.') == std::string::npos) {
    refuse(key.name, "a name is section.key, made of lower-case letters, digits and _");
  }
  for (const Key& other : keys_) {
    if (variable_of(other.name) == variable_of(key.name)) refuse(key.name, "is already declared");
    if (other.name.starts_with(key.name + ".") || key.name.starts_with(other.name + ".")) {
      refuse(key.name, "cannot be a key and a section");
    }
  }
  if (!is_valid(key, key.by_default)) refuse(key.name, "its default is not " + expected(key));
  const auto same_section = [&key](const Key& other) {
    return section_of(other.name) == section_of(key.name);
  };
  const auto last = std::find_if(keys_.rbegin(), keys_.rend(), same_section);
  keys_.insert(last == keys_.rend() ? keys_.end() : last.base(), std::move(key));
}

void Schema::set_default(std::string_view name, std::string_view text) {
  for (Key& key : keys_) {
    if (key.name != name) continue;
    std::optional<Value> value = parse_text(key, text);
    if (!value) refuse(name, "expected " + expected(key) + ", got " + config::quoted(text));
    key.by_default = std::move(*value);
    return;
  }
  refuse(name, "no such setting");
}

const Key* Schema::find(std::string_view name) const {
  for (const Key& key : keys_) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

bool Schema::has_section(std::string_view name) const {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(keys_, [&prefix](const Key& key) { return key.name.starts_with(prefix); });
}

}  // namespace tuza::config
