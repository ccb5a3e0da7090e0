#include <tuza/framework/config/value.h>

#include <tuza/framework/config/units.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/network.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace tuza::config {
namespace {

constexpr std::size_t kUnixPathMax = 107;  // sockaddr_un

bool is_host_name(std::string_view host) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  // A text of only digits and dots would be an IP address; the caller has found that it is not a valid one.
  return !host.empty() && std::ranges::all_of(host, allowed) &&
         host.find_first_not_of("0123456789.") != std::string_view::npos;
}

bool is_address(std::string_view text) {
  if (text.starts_with("unix:")) {
    const std::string_view path = text.substr(5);
    return path.starts_with('/') && path.size() > 1 && path.size() <= kUnixPathMax &&
           path.find('\0') == std::string_view::npos;
  }
  if (net::parse_endpoint(text)) return true;
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && is_host_name(text.substr(0, colon)) &&
         net::parse_endpoint("0.0.0.0" + std::string(text.substr(colon)));
}

List split(std::string_view text) {
  List items;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    const std::size_t first = std::min(item.find_first_not_of(' '), item.size());
    item.remove_prefix(first);
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    items.emplace_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string joined(const List& items, std::string_view separator) {
  std::string text;
  for (const std::string& item : items) text.append(text.empty() ? "" : separator).append(item);
  return text;
}

std::string number_text(const Key& key, std::int64_t number) {
  if (key.type == Type::kDuration) return duration_text(number);
  return key.type == Type::kSize ? size_text(number) : std::to_string(number);
}

std::string list_to_toml(const List& items) {
  List texts;
  for (const std::string& item : items) texts.push_back(config::quoted(item));
  return "[" + joined(texts, ", ") + "]";
}

std::string rows_to_toml(const Key& key, const Rows& rows) {
  List tables;
  for (const List& row : rows) {
    List fields;
    for (std::size_t i = 0; i < row.size(); ++i)
      fields.push_back(key.choices[i] + " = " + config::quoted(row[i]));
    tables.push_back("{ " + joined(fields, ", ") + " }");
  }
  return "[" + joined(tables, ", ") + "]";
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Value> parse_unchecked(const Key& key, std::string_view text) {
  switch (key.type) {
    case Type::kBool:
      if (text != "true" && text != "false") return std::nullopt;
      return text == "true";
    case Type::kInt: return parse_int(text);
    case Type::kDuration: return parse_duration_ms(text);
    case Type::kSize: return parse_size(text);
    case Type::kAddresses: return split(text);
    case Type::kNetworks:
    case Type::kList: return text.empty() ? List{} : split(text);
    case Type::kTables: return std::nullopt;
    case Type::kString:
    case Type::kLine:
    case Type::kAddress:
    case Type::kPath:
    case Type::kChoice: return std::string(text);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Value> parse_text(const Key& key, std::string_view text) {
  std::optional<Value> value = parse_unchecked(key, text);
  if (value && !is_valid(key, *value)) return std::nullopt;
  return value;
}

bool is_valid(const Key& key, const Value& value) {
  const auto may_be_empty = [&key] {
    const auto* by_default = std::get_if<std::string>(&key.by_default);
    return by_default != nullptr && by_default->empty();
  };
  switch (key.type) {
    case Type::kBool:
    case Type::kList:
    case Type::kTables: return true;  // the code that built the rows has checked them
    case Type::kInt:
    case Type::kDuration:
    case Type::kSize: {
      const auto number = std::get<std::int64_t>(value);
      return number >= key.min && number <= key.max;
    }
    case Type::kString: return true;
    case Type::kLine:
      return std::ranges::none_of(std::get<std::string>(value),
                                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    case Type::kPath: {
      const auto& path = std::get<std::string>(value);
      return path.empty() ? may_be_empty() : path.find('\0') == std::string::npos;
    }
    case Type::kAddress: {
      const auto& address = std::get<std::string>(value);
      return address.empty() ? may_be_empty() : is_address(address);
    }
    case Type::kAddresses: {
      const auto& addresses = std::get<List>(value);
      return !addresses.empty() && std::ranges::all_of(addresses, is_address);
    }
    case Type::kNetworks:
      return std::ranges::all_of(std::get<List>(value), [](const std::string& network) {
        return net::Network::parse(network).has_value();
      });
    case Type::kChoice:
      return std::ranges::find(key.choices, std::get<std::string>(value)) != key.choices.end();
  }
  return false;
}

std::string range(const Key& key) {
  switch (key.type) {
    case Type::kInt:
    case Type::kDuration:
    case Type::kSize: return number_text(key, key.min) + " to " + number_text(key, key.max);
    case Type::kChoice: {
      List texts;
      for (const std::string& choice : key.choices) texts.push_back(config::quoted(choice));
      return joined(texts, ", ");
    }
    default: return "";
  }
}

std::string expected(const Key& key) {
  const std::string an_address = R"(such as "127.0.0.1:8080", "[::]:80", ":80" or "unix:/run/app.sock")";
  switch (key.type) {
    case Type::kBool: return "true or false";
    case Type::kInt: return "a number" + (key.unit.empty() ? "" : " of " + key.unit) + " from " + range(key);
    case Type::kDuration: return "a duration from " + range(key) + R"(, such as "250ms", "10s" or "5m")";
    case Type::kSize: return "a size from " + range(key) + R"(, such as "512B", "64KiB" or "8MiB")";
    case Type::kString: return "a string";
    case Type::kLine: return "one line of text";
    case Type::kAddress: return "an address " + an_address;
    case Type::kAddresses: return "one or more addresses " + an_address;
    case Type::kNetworks: return R"(networks such as "10.0.0.0/8", "2001:db8::/32", "192.0.2.1" or "unix:")";
    case Type::kPath: return "the path of a file";
    case Type::kChoice: return "one of " + range(key);
    case Type::kList: return "a list of strings";
    case Type::kTables:
      return "[[" + key.name + "]] tables, each with the strings " + joined(key.choices, ", ");
  }
  return "";
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append(1, '\\').append(1, c);
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(byte));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string to_toml(const Key& key, const Value& value) {
  switch (key.type) {
    case Type::kBool: return std::get<bool>(value) ? "true" : "false";
    case Type::kInt: return std::to_string(std::get<std::int64_t>(value));
    case Type::kDuration: return config::quoted(duration_text(std::get<std::int64_t>(value)));
    case Type::kSize: return config::quoted(size_text(std::get<std::int64_t>(value)));
    case Type::kAddresses:
    case Type::kNetworks:
    case Type::kList: return list_to_toml(std::get<List>(value));
    case Type::kTables: return rows_to_toml(key, std::get<Rows>(value));
    default: return config::quoted(std::get<std::string>(value));
  }
}

}  // namespace tuza::config
