#include <tuza/http/proxy/passed_fields.h>

#include <tuza/http/middleware/real_ip.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/field_lists.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view one) { return equals_ignoring_case(one, name); });
}

bool begins_as(std::string_view name, std::string_view beginning) {
  const auto stands_for = [](char wanted, char c) {
    return lower(c) == lower(wanted) || (c == '_' && wanted == '-');
  };
  return name.size() >= beginning.size() &&
         std::equal(beginning.begin(), beginning.end(), name.begin(), stands_for);
}

bool is_named(std::string_view name, std::string_view wanted) {
  return name.size() == wanted.size() && begins_as(name, wanted);
}

// Lists of which each field has a part, and what each field says for itself.
bool adds_up(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames{"Set-Cookie",
                                                   "Vary",
                                                   "Link",
                                                   "WWW-Authenticate",
                                                   "Server-Timing",
                                                   "Content-Security-Policy",
                                                   "Content-Security-Policy-Report-Only"};
  return is_one_of(name, kNames);
}

// Whether one of the first `count` fields has that name.
bool is_among(const HeaderLines& fields, std::size_t count, std::string_view name) {
  for (auto at = fields.begin(); count > 0; ++at, --count) {
    if (equals_ignoring_case((*at).name, name)) return true;
  }
  return false;
}

// Appends fields to others. Those that were received as they are written, "Name: value", are copied as they are, and neighbours at
// once.
class PassedLines {
 public:
  explicit PassedLines(std::string& out) : out_(out) {}
  PassedLines(const PassedLines&) = delete;
  PassedLines& operator=(const PassedLines&) = delete;

  // Of a message that has been received, behind which is its line end.
  void add(const HeaderField& field) {
    const std::string_view line = line_of(field);
    if (line.empty() || line.data() != run_.data() + run_.size()) copy_run();
    if (line.empty()) return append_field_line(out_, field.name, field.value);
    run_ = run_.empty() ? line : std::string_view(run_.data(), run_.size() + line.size());
  }
  // Behind the last one.
  void copy_run() { out_.append(std::exchange(run_, {})); }

 private:
  // With its line end; empty if there is other white space around the value.
  static std::string_view line_of(const HeaderField& field) {
    constexpr std::string_view kColon = ": ", kEnd = "\r\n";
    const char* const colon = field.name.data() + field.name.size();
    const char* const end = field.value.data() + field.value.size();
    const bool as_written = field.value.data() == colon + kColon.size() &&
                            std::string_view(colon, kColon.size()) == kColon &&
                            std::string_view(end, kEnd.size()) == kEnd;
    if (!as_written) return {};
    return {field.name.data(), static_cast<std::size_t>(end + kEnd.size() - field.name.data())};
  }

  std::string& out_;
  std::string_view run_{};  // not yet copied
};

std::string_view without_brackets(std::string_view address) {
  return address.starts_with('[') ? address.substr(1, address.size() - 2) : address;
}

// Always in quotes: an IPv6 address and a port are no tokens. A host has neither quotes nor backslashes.
void append_pair(std::string& list, std::string_view name, std::string_view value) {
  if (!list.empty()) list += ';';
  list.append(name).append("=\"").append(value).append("\"");
}

}  // namespace

HopFields::HopFields(const ReceivedHeaders& headers) {
  each_element(headers, "Connection", [this](std::string_view option) {
    if (equals_ignoring_case(option, "upgrade")) {
      upgrades_ = true;
    } else if (equals_ignoring_case(option, "te")) {
      names_te_ = true;
    } else if (!equals_ignoring_case(option, "keep-alive") && !equals_ignoring_case(option, "close")) {
      named_.push_back(option);
    }
  });
}

bool HopFields::contains(std::string_view name) const { return always(name) || is_one_of(name, named_); }

// Most names are none of these by their length.
bool HopFields::always(std::string_view name) {
  const auto is = [name](std::string_view one) { return equals_ignoring_case(name, one); };
  switch (name.size()) {
    case 2: return is("TE");
    case 6: return is("Expect");
    case 7: return is("Upgrade");
    case 10: return is("Connection") || is("Keep-Alive");
    case 14: return is("Content-Length");
    case 16: return is("Proxy-Connection");
    case 17: return is("Transfer-Encoding");
    case 18: return is("Proxy-Authenticate");
    case 19: return is("Proxy-Authorization");
    default: return false;
  }
}

std::string protocols_among(const ReceivedHeaders& headers, std::span<const std::string> known) {
  std::string found;
  each_element(headers, "Upgrade", [&](std::string_view protocol) {
    const bool is_known =
        std::ranges::any_of(known, [&](std::string_view one) { return equals_ignoring_case(one, protocol); });
    if (is_known) found.append(found.empty() ? "" : ", ").append(protocol);
  });
  return found;
}

std::string_view address_of(std::string_view peer) {
  return peer.starts_with("unix:") ? std::string_view() : peer.substr(0, peer.rfind(':'));
}

bool says_who_asks(std::string_view name) {
  return begins_as(name, "X-Forwarded-") || is_named(name, "Forwarded") || is_named(name, "X-Real-IP");
}

bool may_pass(std::string_view name, bool underscores) {
  return !says_who_asks(name) && (underscores || !name.contains('_'));
}

// A parser has accepted what comes in: it needs no second look.
void pass_fields(const Request& in, const HopFields& hop, ClientRequest& out, bool underscores) {
  constexpr std::size_t kUsual = 512;  // with what a proxy adds
  out.fields_.reserve(kUsual);
  PassedLines lines(out.fields_);
  for (const HeaderField field : in.headers()) {
    const bool passes = !equals_ignoring_case(field.name, "Host") && may_pass(field.name, underscores) &&
                        !hop.contains(field.name);
    if (passes) lines.add(field);
  }
  lines.copy_run();
}

void pass_fields(const ClientResponse& in, Exchange& out) {
  const HopFields hop(in.headers());
  std::string& lines = out.buffers().extra;
  const HeaderLines set(lines);  // grows below
  const auto set_before = static_cast<std::size_t>(std::distance(set.begin(), set.end()));
  PassedLines passed(lines);
  for (const HeaderField field : in.headers()) {
    const std::string_view name = field.name;
    if (hop.contains(name)) continue;
    const bool stays = set_before > 0 && !adds_up(name) && is_among(HeaderLines(lines), set_before, name);
    if (stays) continue;
    out.note_header(name);
    passed.add(field);
  }
  passed.copy_run();
}

void add_known_field(ClientRequest& out, std::string_view name, std::string_view value) {
  append_field_line(out.fields_, name, value);
}

void add_forwarded(const Request& in, ForwardedFields kind, ClientRequest& out) {
  if (kind == ForwardedFields::kNone) return;
  const std::string_view address = address_of(in.remote());
  const Forwarded* const told = in.get(kForwarded);
  const std::string_view proto = told && !told->proto.empty() ? std::string_view(told->proto)
                                 : in.tls_info()              ? "https"
                                                              : "http";
  const std::string_view host = told && !told->host.empty() ? std::string_view(told->host) : in.host();
  // What a middleware has set is the program's, and may be anything.
  const auto add = [&](std::string_view name, std::string_view value) {
    told ? void(out.add_header(name, value)) : add_known_field(out, name, value);
  };
  if (kind == ForwardedFields::kXForwarded) {
    if (!address.empty()) add("X-Forwarded-For", without_brackets(address));
    add("X-Forwarded-Proto", proto);
    if (!host.empty()) add("X-Forwarded-Host", host);
    if (!in.mount_path().empty()) add("X-Forwarded-Prefix", in.mount_path());
    return;
  }
  std::string list;
  append_pair(list, "for", address.empty() ? "unknown" : address);
  append_pair(list, "proto", proto);
  if (!host.empty()) append_pair(list, "host", host);
  add("Forwarded", list);
}

}  // namespace tuza::http
