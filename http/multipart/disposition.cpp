#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/multipart/disposition.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace tuza::http {
namespace {

constexpr std::size_t kParametersMax = 16;
constexpr std::size_t kSafeNameBytes = 200;
constexpr std::string_view kContent = "Content-";  // the fields of a part that mean anything

void skip_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

std::string_view take_token(std::string_view& text) {
  const auto end = std::ranges::find_if(text, [](char c) { return !is(c, kTokenChar); });
  const std::string_view token = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(token.size());
  return token;
}

std::optional<std::string> take_quoted(std::string_view& text) {
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\')) ++i;
    value += text[i];
  }
  return std::nullopt;
}

std::string decoded_as_browsers_encode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = is_percent_escape(text, i) ? unescaped(text, i) : '\0';
    if (c == '"' || c == '\r' || c == '\n') {
      out += c;
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Those that control, that mean something to a shell or a file system, and those that turn the direction of writing, so that
// "exe.png" may be shown for what ends with ".exe".
bool is_harmful(char32_t code) {
  if (code >= 0x80) return detail::is_deceptive(code);
  return code < 0x20 || code == 0x7f || std::string_view("<>:\"|?*/\\").contains(static_cast<char>(code));
}

// What Windows takes for a device, in any folder and with any extension.
bool is_device(std::string_view name) {
  const std::string_view stem = trim(name.substr(0, name.find('.')));
  const auto named = [stem](std::string_view device) { return equals_ignoring_case(stem, device); };
  if (std::ranges::any_of(std::array<std::string_view, 4>{"CON", "PRN", "AUX", "NUL"}, named)) return true;
  const std::string_view port = stem.substr(0, std::min<std::size_t>(stem.size(), 3));
  return stem.size() == 4 && stem[3] >= '0' && stem[3] <= '9' &&
         (equals_ignoring_case(port, "COM") || equals_ignoring_case(port, "LPT"));
}

}  // namespace

std::optional<std::string> ParameterList::get(std::string_view name) const {
  for (const auto& [found, value] : items) {
    if (equals_ignoring_case(found, name)) return value;
  }
  return std::nullopt;
}

std::optional<ParameterList> parse_parameters(std::string_view field) {
  ParameterList list;
  field.remove_prefix(std::min(field.find(';'), field.size()));
  while (!field.empty()) {
    if (field.front() != ';') return std::nullopt;
    field.remove_prefix(1);
    skip_spaces(field);
    if (field.empty() || field.front() == ';') continue;
    const std::string_view name = take_token(field);
    if (name.empty() || !field.starts_with('=')) return std::nullopt;
    field.remove_prefix(1);
    const std::optional<std::string> value =
        field.starts_with('"') ? take_quoted(field) : std::optional(std::string(take_token(field)));
    if (!value || list.get(name) || list.items.size() == kParametersMax) return std::nullopt;
    list.items.emplace_back(name, *value);
    skip_spaces(field);
  }
  return list;
}

bool is_part_head(std::string_view head) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (colon == 0 || colon == std::string_view::npos) return false;
    const std::string_view name = line.substr(0, colon);
    if (!std::ranges::all_of(name, [](char c) { return is(c, kTokenChar); })) return false;
    if (has_control_char(line.substr(colon + 1))) return false;
    if (name.size() > kContent.size() && equals_ignoring_case(name.substr(0, kContent.size()), kContent) &&
        part_field(head, name))
      return false;
  }
  return true;
}

std::optional<std::string_view> part_field(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    const std::size_t colon = line.find(':');
    if (equals_ignoring_case(line.substr(0, colon), name)) return trim(line.substr(colon + 1));
  }
  return std::nullopt;
}

std::optional<Disposition> parse_disposition(std::string_view field) {
  if (!equals_ignoring_case(trim(field.substr(0, field.find(';'))), "form-data")) return std::nullopt;
  const std::optional<ParameterList> parameters = parse_parameters(field);
  if (!parameters) return std::nullopt;
  const std::optional<std::string> name = parameters->get("name"), file_name = parameters->get("filename");
  if (!name) return std::nullopt;
  Disposition found{decoded_as_browsers_encode(*name), std::nullopt};
  if (file_name) found.file_name = decoded_as_browsers_encode(*file_name);
  return found;
}

std::string safe_file_name(std::string_view file_name) {
  file_name.remove_prefix(file_name.find_last_of("/\\") + 1);  // npos + 1 is 0
  std::string safe;
  while (!file_name.empty()) {
    const auto [bytes, code] = detail::utf8_char(file_name);
    const std::string_view character = file_name.substr(0, std::max<std::size_t>(bytes, 1));
    file_name.remove_prefix(character.size());
    if (safe.empty() && (character == "." || character == " ")) continue;
    if (safe.size() + character.size() > kSafeNameBytes) break;
    safe += bytes == 0 || is_harmful(code) ? std::string_view("_") : character;
  }
  while (safe.ends_with('.') || safe.ends_with(' ')) safe.pop_back();
  if (is_device(safe)) return safe_file_name("_" + safe);  // which may have to be cut
  return safe.empty() ? "file" : safe;
}

}  // namespace tuza::http
