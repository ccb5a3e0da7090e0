#include <tuza/http/values.h>

#include <tuza/http/wire/chars.h>

namespace tuza::http {
namespace {

void append_encoded(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '*' ||
                       c == '-' || c == '.' || c == '_';
    if (plain) {
      out += c;
    } else if (c == ' ') {
      out += '+';
    } else {
      out.append(1, '%').append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
}

}  // namespace

void Values::append_decoded(std::string_view encoded) {
  for (std::size_t i = 0; i < encoded.size(); ++i) {
    if (is_percent_escape(encoded, i)) {
      text_ += unescaped(encoded, i);
      i += 2;
    } else {
      text_ += encoded[i] == '+' ? ' ' : encoded[i];
    }
  }
}

std::optional<Values> Values::parse(std::string_view encoded, std::size_t count_max) {
  Values values;
  values.text_.reserve(encoded.size());
  while (!encoded.empty()) {
    const std::string_view pair = encoded.substr(0, encoded.find('&'));
    encoded.remove_prefix(pair.size() + (pair.size() < encoded.size() ? 1 : 0));
    if (pair.empty()) continue;
    if (values.spans_.size() == count_max) return std::nullopt;
    const std::string_view name = pair.substr(0, pair.find('='));
    Span span{values.text_.size(), 0, 0};
    values.append_decoded(name);
    span.name_bytes = values.text_.size() - span.begin;
    if (name.size() < pair.size()) values.append_decoded(pair.substr(name.size() + 1));
    span.value_bytes = values.text_.size() - span.begin - span.name_bytes;
    values.spans_.push_back(span);
  }
  return values;
}

Values::Item Values::operator[](std::size_t index) const {
  const Span& span = spans_[index];
  const std::string_view text(text_);
  return {text.substr(span.begin, span.name_bytes),
          text.substr(span.begin + span.name_bytes, span.value_bytes)};
}

std::optional<std::string_view> Values::get(std::string_view name) const {
  for (const Item item : *this) {
    if (item.name == name) return item.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Values::get_all(std::string_view name) const {
  std::vector<std::string_view> found;
  for (const Item item : *this) {
    if (item.name == name) found.push_back(item.value);
  }
  return found;
}

void Values::add(std::string_view name, std::string_view value) {
  spans_.push_back({text_.size(), name.size(), value.size()});
  text_.append(name).append(value);
}

std::string Values::encode() const {
  std::string out;
  for (const Item item : *this) {
    if (!out.empty()) out += '&';
    append_encoded(out, item.name);
    out += '=';
    append_encoded(out, item.value);
  }
  return out;
}

}  // namespace tuza::http
