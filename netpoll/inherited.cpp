#include <tuza/netpoll/inherited.h>

#include <tuza/sched/arch/calls.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

namespace tuza::net {
namespace {

constexpr int kFirst = 3;  // SD_LISTEN_FDS_START, sd_listen_fds(3)
constexpr int kCountMax = 1024;

std::optional<std::string> take_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::string value(text);
  ::unsetenv(name);
  return value;
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Removes and returns the first of the colon-separated names.
std::string next_name(std::string_view& names) {
  const std::size_t colon = names.find(':');
  std::string name(names.substr(0, colon));
  names = colon == names.npos ? std::string_view{} : names.substr(colon + 1);
  return name.empty() ? "unknown" : name;
}

}  // namespace

Result<std::vector<InheritedListener>> inherited_listeners() {
  const std::optional<std::string> pid = take_from_environment("LISTEN_PID");
  const std::optional<std::string> fds = take_from_environment("LISTEN_FDS");
  const std::string all_names = take_from_environment("LISTEN_FDNAMES").value_or("");
  std::vector<InheritedListener> listeners;
  if (!pid || !fds) return listeners;
  const auto malformed = [](const char* name, const std::string& value) {
    return std::unexpected(Error::from_errno(EINVAL, "inherit", std::string(name) + "=" + value));
  };
  const std::optional<int> for_whom = number(*pid);
  if (!for_whom) return malformed("LISTEN_PID", *pid);
  if (*for_whom != sys::getpid()) return listeners;
  const std::optional<int> count = number(*fds);
  if (!count || *count > kCountMax) return malformed("LISTEN_FDS", *fds);
  std::string_view names = all_names;
  for (int fd = kFirst; fd < kFirst + *count; ++fd) {
    Result<Listener> listener = Listener::adopt(fd);
    if (!listener) {
      for (int rest = fd + 1; rest < kFirst + *count; ++rest) sys::close(rest);
      return std::unexpected(listener.error());
    }
    listeners.push_back({next_name(names), std::move(*listener)});
  }
  return listeners;
}

}  // namespace tuza::net
