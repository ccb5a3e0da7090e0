#include <tuza/http/url.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/host.h>

#include <algorithm>
#include <charconv>

namespace tuza::http {
namespace {

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  std::string shown(text);
  // Credentials stand in front of the last "@" of the authority.
  const std::size_t slashes = shown.find("//");
  const std::size_t begin = slashes == std::string::npos ? 0 : slashes + 2;
  const std::size_t at = shown.substr(0, shown.find_first_of("/?#", begin)).rfind('@');
  if (at != std::string::npos && at > begin) shown.replace(begin, at - begin, "...");
  shown.resize(std::min<std::size_t>(shown.size(), 200));
  std::replace_if(shown.begin(), shown.end(), [](char c) { return has_control_char({&c, 1}); }, '?');
  return std::unexpected(Error(Errc::kBadAddress, "parse url", shown + ": " + std::string(why)));
}

// RFC 3986 3.1: a scheme, if the text begins with one; "a:b" without slashes has one, too.
std::string_view scheme_of(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') return text.substr(0, i);
    if (!is(text[i], kTokenChar) || text[i] == '#') break;
  }
  return {};
}

void append_escape(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
}

// What is neither an escape nor allowed in a target as it is, becomes an escape.
void append_encoded(std::string& out, std::string_view text, CharClass allowed) {
  const auto stays = [allowed](char c) {
    return static_cast<unsigned char>(c) < 0x80 && c != '%' && is(c, allowed);
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && (stays(text[end]) || is_percent_escape(text, end))) ++end;
    out.append(text.substr(i, end - i));
    if (end < text.size()) append_escape(out, text[end++]);
    i = end;
  }
}

// RFC 3986 5.2.4: "." and ".." are taken out of a path that begins with "/".
std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view segment = path.substr(1, end - 1);
    const bool last = end == path.size();
    path.remove_prefix(end);
    if (segment == "..") out.resize(std::min(out.rfind('/'), out.size()));
    if (segment != "." && segment != "..") {
      out.append("/").append(segment);
    } else if (last) {
      out += '/';
    }
  }
  return out;
}

// `text`: a path and a query, with or without either.
std::string target_of(std::string_view text) {
  const std::size_t mark = std::min(text.find('?'), text.size());
  std::string target;
  target.reserve(text.size() + 1);
  if (!text.starts_with('/')) target += '/';
  append_encoded(target, text.substr(0, mark), kPathChar);
  if (target.contains("/.")) target = without_dots(target);
  append_encoded(target, text.substr(mark), kQueryChar);
  return target;
}

// The authority, and behind it the rest of a URL.
Result<Url> parse_authority(bool https, std::string_view rest, std::string_view whole) {
  const auto ends = [](char c) { return c == '/' || c == '?' || c == '\\'; };
  const auto end = static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(), ends) - rest.begin());
  std::string authority(rest.substr(0, end));
  if (authority.contains('@')) return bad(whole, "credentials belong into an Authorization field");
  if (authority.empty() || authority.front() == ':') return bad(whole, "no host");
  if (!is_host_and_port(authority)) return bad(whole, "malformed host or port");
  std::transform(authority.begin(), authority.end(), authority.begin(), lower);
  const std::size_t colon = authority.find(':', authority.starts_with('[') ? authority.find(']') : 0);
  if (colon != std::string::npos) {
    const std::string_view digits = std::string_view(authority).substr(colon + 1);
    unsigned port = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (!digits.empty() && (port == 0 || port > 65535)) return bad(whole, "port out of range");
    const bool usual = digits.empty() || port == (https ? 443U : 80U);
    authority.resize(colon);
    if (!usual) authority += ":" + std::to_string(port);
  }
  return Url{https, std::move(authority), target_of(rest.substr(end))};
}

// A reference as the URL standard of browsers reads it (https://url.spec.whatwg.org): without controls and spaces around it, and
// without tabs and line ends in it; up to a query or a fragment, "\" is "/".
std::string as_browsers_read(std::string_view text) {
  const auto surrounds = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && surrounds(text.front())) text.remove_prefix(1);
  while (!text.empty() && surrounds(text.back())) text.remove_suffix(1);
  std::string read;
  read.reserve(text.size());
  bool in_path = true;
  for (const char c : text) {
    if (c == '\t' || c == '\n' || c == '\r') continue;
    in_path = in_path && c != '?' && c != '#';
    read += in_path && c == '\\' ? '/' : c;
  }
  return read;
}

std::string_view without_fragment(std::string_view text) { return text.substr(0, text.find('#')); }

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  // Tabs included: has_control_char() lets them pass.
  if (has_control_char(text) || text.contains('\t')) return bad(text, "control character");
  const std::string_view scheme = scheme_of(text);
  const bool https = equals_ignoring_case(scheme, "https");
  if (!https && !equals_ignoring_case(scheme, "http")) return bad(text, "neither http:// nor https://");
  std::string_view rest = without_fragment(text.substr(scheme.size() + 1));
  if (!rest.starts_with("//")) return bad(text, "neither http:// nor https://");
  return parse_authority(https, rest.substr(2), text);
}

Result<void> Url::check() const {
  const std::string_view whole = target;
  const std::string_view path = whole.substr(0, whole.find('?'));
  const std::string_view query = whole.substr(path.size());
  const auto all = [](std::string_view text, CharClass allowed) {
    return std::all_of(text.begin(), text.end(), [allowed](char c) { return is(c, allowed); });
  };
  if (!path.starts_with('/') || !all(path, kPathChar) || !all(query, kQueryChar))
    return bad(target, "malformed target");
  if (authority.empty() || authority.front() == ':' || !is_host_and_port(authority))
    return bad(authority, "malformed host or port");
  return {};
}

Result<Url> Url::resolve(std::string_view reference) const {
  const std::string text = as_browsers_read(reference);
  if (!scheme_of(text).empty()) return parse(text);
  if (has_control_char(text)) return bad(text, "control character");
  const std::string_view rest = without_fragment(text);
  if (rest.starts_with("//")) return parse_authority(https, rest.substr(2), text);
  Url url{https, authority, target};
  if (rest.empty()) return url;
  const std::string_view path = std::string_view(target).substr(0, target.find('?'));
  if (rest.starts_with('?')) {
    url.target = target_of(std::string(path).append(rest));
  } else if (rest.starts_with('/')) {
    url.target = target_of(rest);
  } else {
    url.target = target_of(std::string(path.substr(0, path.rfind('/') + 1)).append(rest));
  }
  return url;
}

std::string_view Url::host() const {
  const std::string_view text = authority;
  if (text.starts_with('[')) return text.substr(1, text.find(']') - 1);
  return text.substr(0, text.find(':'));
}

std::string Url::address() const {
  std::string text = authority;
  const std::size_t end = text.starts_with('[') ? text.find(']') : 0;
  if (text.find(':', end) == std::string::npos) text += https ? ":443" : ":80";
  // RFC 6874: the zone of an IPv6 address is behind "%25" in a URL, and behind "%" everywhere else.
  if (const std::size_t zone = text.find("%25"); zone < end) text.erase(zone + 1, 2);
  return text;
}

std::string Url::origin() const { return (https ? "https://" : "http://") + authority; }

std::string path_escape(std::string_view segment) {
  constexpr std::string_view kUnreserved = "-._~";  // beside letters and digits: RFC 3986 2.3
  const bool dots = segment == "." || segment == "..";
  std::string out;
  out.reserve(segment.size());
  for (const char c : segment) {
    const bool plain =
        (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || (kUnreserved.contains(c) && !dots);
    if (plain) {
      out += c;
    } else {
      append_escape(out, c);
    }
  }
  return out;
}

}  // namespace tuza::http
