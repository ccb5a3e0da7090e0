// Prints a configuration as TOML, for --print-config.
#include <tuza/framework/config/config.h>

namespace tuza::config {
namespace {

std::string_view type_text(Type type) {
  switch (type) {
    case Type::kBool: return "true or false";
    case Type::kInt: return "number";
    case Type::kDuration: return "duration";
    case Type::kSize: return "size";
    case Type::kString: return "string";
    case Type::kAddress: return "address";
    case Type::kAddresses: return "addresses";
    case Type::kPath: return "path";
    case Type::kChoice: return "one of";
    case Type::kList: return "list of strings";
    case Type::kTables: return "tables";
  }
  return "";
}

// Replaces control characters with spaces: a line end in a program's text would end the TOML comment.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

std::string Config::to_toml() const {
  std::string out;
  std::string_view section;
  for (const Key& key : schema_->keys()) {
    if (section != section_of(key.name)) {
      section = section_of(key.name);
      out += (out.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    const Entry& now = entry(key.name);
    std::string kind(type_text(key.type));
    if (!key.unit.empty()) kind += " of " + key.unit;
    if (const std::string limits = range(key); !limits.empty()) {
      kind += (key.type == Type::kChoice ? " " : ", ") + limits;
    }
    out += "# " + one_line(key.doc) + "\n";
    out += "# " + kind + "; default " + config::to_toml(key, key.standard) + "; from " + one_line(now.origin);
    out += key.reload ? "; SIGHUP applies a change\n" : "\n";
    out += key.name.substr(section.size() + 1) + " = " + config::to_toml(key, now.value) + "\n";
  }
  return out;
}

}  // namespace tuza::config
