// Prints a configuration as TOML, for --print-config, and the settings of a program, for --help.
#include <tuza/framework/config/config.h>

namespace tuza::config {
namespace {

std::string_view type_text(Type type) {
  switch (type) {
    case Type::kBool: return "true or false";
    case Type::kInt: return "number";
    case Type::kDuration: return "duration";
    case Type::kSize: return "size";
    case Type::kString:
    case Type::kLine: return "string";
    case Type::kAddress: return "address";
    case Type::kAddresses: return "addresses";
    case Type::kNetworks: return "networks";
    case Type::kPath: return "path";
    case Type::kChoice: return "one of";
    case Type::kList: return "list of strings";
    case Type::kTables: return "tables";
  }
  return "";
}

// "duration, 0s to 1h; default "2s"".
std::string kind_and_default(const Key& key) {
  std::string kind(type_text(key.type));
  if (!key.unit.empty()) kind += " of " + key.unit;
  if (const std::string limits = range(key); !limits.empty()) {
    kind += (key.type == Type::kChoice ? " " : ", ") + limits;
  }
  return kind + "; default " + config::to_toml(key, key.by_default);
}

}  // namespace

std::string help_of_own(const Schema& schema) {
  const Schema builtin = builtin_schema();
  std::string out;
  for (const Key& key : schema.keys()) {
    if (builtin.find(key.name) != nullptr) continue;
    out += "  " + key.name + "\n      " + one_line(key.doc) + "\n      " + one_line(kind_and_default(key)) +
           "\n";
  }
  return out;
}

std::string Config::to_toml() const {
  std::string out;
  std::string_view section;
  for (const Key& key : schema_->keys()) {
    if (section != section_of(key.name)) {
      section = section_of(key.name);
      out += (out.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    const Entry& now = entry(key.name);
    out += "# " + one_line(key.doc) + "\n";
    out += "# " + one_line(kind_and_default(key)) + "; from " + one_line(now.origin);
    out += key.reload ? "; SIGHUP applies a change\n" : "\n";
    out += key.name.substr(section.size() + 1) + " = " + config::to_toml(key, now.value) + "\n";
  }
  return out;
}

}  // namespace tuza::config
