#include <tuza/http/proxy/background.h>

#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/wire/chars.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/socket/resolve_for.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace tuza::http {
namespace {

using Places = Result<std::vector<std::string>>;

// The system's resolver.
Places addresses_of(const Context& ctx, std::string_view host_port) {
  const Result<std::vector<net::Endpoint>> found = net::resolve_for(ctx, "tcp", host_port);
  if (!found) return std::unexpected(found.error());
  std::vector<std::string> places;
  for (const net::Endpoint& one : *found) places.push_back(net::to_string(one));
  return places;
}

void log_failed_lookup(const std::string& name, const Places& places) {
  static LogLimiter limiter(10);
  const std::string why = places ? "there is no address" : places.error().message();
  limiter.log(LogLevel::kWarning, "tuza: upstream " + name + " stays as it is: " + why);
}

// "10.0.0.1:8080", "[::1]:8080"; also a name, as SRV records have them.
bool is_place(std::string_view text) {
  if (net::parse_endpoint(text)) return true;
  constexpr std::size_t kNameMax = 253;  // RFC 1035, as text
  const std::size_t colon = std::min(text.rfind(':'), text.size());
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(std::min(colon + 1, text.size()));
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  const auto is_of_name = [](char c) {
    return is(c, kTokenChar) && is(c, kHostChar) && !std::string_view("~!$&'*+").contains(c);
  };
  return error == std::errc{} && end == port.data() + port.size() && number > 0 && !host.empty() &&
         host.size() <= kNameMax && host != "unix" && std::ranges::all_of(host, is_of_name);
}

// From a program's own function.
bool is_refused(const std::string& name, const std::string& place) {
  if (is_place(place)) return false;
  static LogLimiter limiter(10);
  std::string line = "tuza: upstream " + name + ": not an address with a port, from `resolve`: ";
  detail::append_log_escaped(line, place.substr(0, 1000));
  limiter.log(LogLevel::kWarning, line);
  return true;
}

// A program's own function may use libraries that throw.
Places ask(const ReverseProxyOptions::Resolve& resolve, const std::string& name, const Context& stop) {
  try {
    return resolve(stop, Url::parse(name)->address());
  } catch (const std::exception& thrown) {
    return std::unexpected(Error(Errc::kOther, "resolve", std::string(thrown.what())));
  } catch (...) {
    if (std::current_exception() == nullptr) throw;  // not a C++ exception: goexit()
    return std::unexpected(Error(Errc::kOther, "resolve", "an exception not derived from std::exception"));
  }
}

}  // namespace

Background::Work::Work(const ReverseProxyOptions& options, std::shared_ptr<Upstreams> all)
    : upstreams(std::move(all)),
      checks(options),
      every(options.resolve_every),
      resolve(options.resolve != nullptr ? options.resolve : addresses_of),
      looked_up(static_cast<std::int64_t>(upstreams->names().size())) {}

Background::Background(const ReverseProxyOptions& options, std::shared_ptr<Upstreams> upstreams)
    : work_(std::make_shared<Work>(options, std::move(upstreams))),
      ready_(work_->upstreams->names().empty() && !work_->checks.wanted()) {}

// After tuza::run the goroutines are gone, and nobody would come.
Background::~Background() {
  stop_.cancel();
  if (!run_.ended()) work_->awaited.wait();
}

// An address that an error hides may be well: what was known stays.
void Background::Work::look_up(std::size_t name, const Context& stop) const {
  const std::string& text = upstreams->names()[name];
  Places places = ask(resolve, text, stop);
  if (stop.done()) return;
  if (places) std::erase_if(*places, [&](const std::string& one) { return is_refused(text, one); });
  if (!places || places->empty()) return log_failed_lookup(text, places);
  std::ranges::sort(*places);
  places->erase(std::unique(places->begin(), places->end()), places->end());
  for (const UpstreamRef& fresh : upstreams->set_places(name, *places, stop))
    checks.watch(awaited, upstreams, fresh, fresh->life.ctx());
}

void Background::begin() {
  run_.set();
  stop_ = with_cancel(Context::background());
  for (const UpstreamRef& upstream : work_->upstreams->all())
    work_->checks.watch(work_->awaited, work_->upstreams, upstream, stop_.ctx());
  for (std::size_t name = 0; name < work_->upstreams->names().size(); ++name) {
    work_->awaited.go([work = work_, name, stop = Context(stop_.ctx())] {
      work->look_up(name, stop);
      work->looked_up.count_down();
      while (sleep_for(stop, work->every)) work->look_up(name, stop);
    });
  }
}

void Background::become_ready(const Context& ctx) {
  if (!begun_.exchange(true)) begin();
  if (work_->looked_up.wait(ctx)) ready_.store(true, std::memory_order_release);
}

}  // namespace tuza::http
