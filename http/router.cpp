#include <tuza/http/router.h>

#include <tuza/http/route/clean_path.h>
#include <tuza/http/route/route_tree.h>
#include <tuza/http/serve/exchange.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http {

// What a router has found for a request.
struct RouteTarget {
  enum class Redirect : std::uint8_t { kNo, kToCleanPath, kToCleanPathAndSlash, kToSlash };
  const Handler* handler = nullptr;  // null: a text answers
  bool found = false;
  unsigned allowed = 0;  // if nothing is found
  Redirect redirect = Redirect::kNo;
};

namespace {

std::string allow_list(unsigned methods) {
  std::string list;
  for (int i = 0; i < kMethodCount; ++i) {
    if ((methods & (1u << i)) == 0) continue;
    if (!list.empty()) list += ", ";
    list += name(static_cast<Method>(i));
  }
  return list;
}

// With the prefix of a mount, since ".." may lead out of it.
std::string clean_whole_path(const Request& request) {
  return clean_path(std::string(request.mount_path()).append(request.path()));
}

// The method stays the same, unlike after 301, and browsers do not remember it: the next release may have the path.
void redirect(RouteTarget::Redirect to, const Request& request, ResponseWriter& response) {
  using enum RouteTarget::Redirect;
  std::string path =
      to == kToSlash ? std::string(request.mount_path()).append(request.path()) : clean_whole_path(request);
  if (to != kToCleanPath) path.append("/");
  if (!request.query().empty()) path.append("?").append(request.query());
  response.redirect(path, 307);
}

// A handler that is not called if the body of the request is too large to be read: the server answers when the middleware
// around it has returned.
Handler unless_too_large(Handler handler) {
  if (!handler) return handler;
  return [handler = std::move(handler)](Request& request, ResponseWriter& response) {
    if (!request.exchange().too_large()) [[likely]]
      handler(request, response);
  };
}

// Where the path begins in "GET host/path".
std::size_t path_of(std::string_view pattern) {
  const std::size_t behind_method = pattern.find_first_of(" \t");
  const std::size_t from = behind_method == std::string_view::npos ? 0 : behind_method;
  return std::min(pattern.find('/', from), pattern.size());
}

void require_prefix(std::string_view prefix) {
  if (prefix.empty() || prefix == "/" || !prefix.starts_with('/') || prefix.ends_with('/')) {
    throw std::invalid_argument("prefix \"" + std::string(prefix) +
                                "\": must be a path such as \"/api\", without a slash at the end");
  }
}

// "GET /x" behind "/debug" is "GET /debug/x".
void join_patterns(ExchangeBuffers& buffers, std::string_view prefix) {
  const std::string_view inner = buffers.pattern;
  const std::size_t at = path_of(inner);
  const std::size_t size = inner.size() + prefix.size();
  auto* text = static_cast<char*>(buffers.arena().allocate(size, 1));
  // Not memcpy(): the pattern of a router that has found nothing has no address.
  inner.copy(text, at);
  prefix.copy(text + at, prefix.size());
  inner.substr(at).copy(text + at + prefix.size(), inner.size() - at);
  buffers.pattern = {text, size};
}

// Cuts `prefix` off the path of a request, for the length of a scope. Puts it in front of the pattern that a router has
// found meanwhile.
class WithoutPrefix {
 public:
  WithoutPrefix(ExchangeBuffers& buffers, std::string_view prefix)
      : buffers_(buffers),
        prefix_(prefix),
        path_(buffers.head.path),
        pattern_(buffers.pattern),
        mounted_(buffers.mounted_bytes) {
    std::string_view rest = path_.in(buffers.head_base);
    // Not by the length of the prefix: the segments may be encoded.
    std::ptrdiff_t segments = std::ranges::count(prefix, '/');
    for (; segments > 0; --segments) rest.remove_prefix(std::min(rest.find('/', 1), rest.size()));
    const auto cut = static_cast<std::uint32_t>(path_.size - rest.size());
    buffers.head.path = {path_.begin + cut, path_.size - cut};
    buffers.mounted_bytes += cut;
  }
  ~WithoutPrefix() {
    buffers_.head.path = path_;
    buffers_.mounted_bytes = mounted_;
    if (buffers_.pattern.data() == pattern_.data()) return;
    try {
      join_patterns(buffers_, prefix_);
    } catch (const std::bad_alloc&) {
      buffers_.pattern = pattern_;
    }
  }
  WithoutPrefix(const WithoutPrefix&) = delete;
  WithoutPrefix& operator=(const WithoutPrefix&) = delete;

 private:
  ExchangeBuffers& buffers_;
  const std::string_view prefix_;
  const HeadSlice path_;
  const std::string_view pattern_;
  const std::uint32_t mounted_;
};

// Without a route. Its own function, and so is find(): a handler may wait for hours, and what its
// callers do not need meanwhile takes no room on the stack below it.
[[gnu::noinline]] void answer_miss(const RouteTarget& target, Request& request, ResponseWriter& response) {
  if (target.redirect != RouteTarget::Redirect::kNo) return redirect(target.redirect, request, response);
  int status = 404;
  if (target.allowed != 0) {
    response.set_header("Allow", allow_list(target.allowed | 1u << static_cast<int>(Method::kOptions)));
    if (request.method() == Method::kOptions) return response.status(204);
    status = 405;
  }
  if (target.handler == nullptr) return response.error(status);
  response.status(status);
  (*target.handler)(request, response);
}

void answer(const RouteTarget& target, Request& request, ResponseWriter& response) {
  if (!target.found) [[unlikely]]
    return answer_miss(target, request, response);
  (*target.handler)(request, response);
}

[[gnu::noinline]] RouteTarget find(const RouteTree& tree, const RouterRedirects& redirects,
                                   const Request& request, ExchangeBuffers& buffers) {
  RouteTarget target;
  const std::string_view path = request.path();
  if (path == "*") {
    // Not a path; only OPTIONS can request it.
    target.allowed = tree.methods() | 1u << static_cast<int>(Method::kOptions);
    return target;
  }
  if (redirects.to_clean_path && !is_clean(path)) [[unlikely]] {
    const std::string clean = clean_whole_path(request);
    const std::string_view mount = request.mount_path();
    const std::string_view here =
        clean.starts_with(mount) ? std::string_view(clean).substr(mount.size()) : "";
    const bool slash = redirects.to_missing_slash && here.starts_with('/') &&
                       tree.find(request.method(), request.host(), here, buffers).slash_is_missing;
    buffers.path_values.clear();  // they are views of `clean`
    target.redirect =
        slash ? RouteTarget::Redirect::kToCleanPathAndSlash : RouteTarget::Redirect::kToCleanPath;
    return target;
  }
  const RouteTree::Found found = tree.find(request.method(), request.host(), path, buffers);
  if (found.slash_is_missing && redirects.to_missing_slash) {
    target.redirect = RouteTarget::Redirect::kToSlash;
    return target;
  }
  buffers.pattern = {};
  if (found.route != nullptr) {
    buffers.pattern = found.route->pattern;
    target.handler = &found.route->handler;
    target.found = true;
  }
  target.allowed = found.allowed | (redirects.to_missing_slash ? found.allowed_with_slash : 0);
  return target;
}

// A handler for a prefix and all that is below it; without a prefix, for every path.
void add_below(RouteTree& tree, std::string_view prefix, Handler handler, const std::source_location& where) {
  if (!handler) throw std::invalid_argument("prefix \"" + std::string(prefix) + "\": no handler");
  const auto shared = std::make_shared<Handler>(std::move(handler));
  const auto call = [shared](Request& request, ResponseWriter& response) { (*shared)(request, response); };
  if (!prefix.empty()) tree.add(prefix, call, where);
  tree.add(std::string(prefix) + "/", call, where);
}

}  // namespace

// The handlers of not_found() and method_not_allowed(). A router without them has none of this.
struct Router::Misses {
  RouteTree not_found, method_not_allowed;

  [[nodiscard, gnu::noinline]] const Handler* handler(unsigned allowed, const Request& request,
                                                      ExchangeBuffers& buffers) const {
    const RouteTree& tree = allowed == 0 ? not_found : method_not_allowed;
    const RouteTree::Found found = tree.find(request.method(), request.host(), request.path(), buffers);
    return found.route == nullptr ? nullptr : &found.route->handler;
  }
};

// The middleware of a router. It is called when the target is known, so that it sees the pattern; the innermost handler
// takes the target from the request.
struct Router::Chain {
  static constexpr Key<const RouteTarget*> kTarget{};

  // Grows inwards: what stands for the next middleware is the target's handler until there is one.
  struct Place {
    Handler next;
  };
  Handler outermost;
  std::shared_ptr<Place> innermost;

  [[gnu::noinline]] void call(const RouteTarget& target, Request& request, ResponseWriter& response) const {
    const Current current(request, target);
    outermost(request, response);
  }

  // The target is the request's for the length of a scope: behind a mount, there is another chain with another one.
  class Current {
   public:
    Current(Request& request, const RouteTarget& target) : request_(request) {
      if (const RouteTarget* const* const set = request.get(kTarget)) outer_ = *set;
      request.set(kTarget, &target);
    }
    ~Current() { *request_.get(kTarget) = outer_; }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    Request& request_;
    const RouteTarget* outer_ = nullptr;
  };

  static void call_target(Request& request, ResponseWriter& response) {
    answer(**request.get(kTarget), request, response);
  }
  void add(Middleware& middleware) {
    const auto place = std::make_shared<Place>(Place{&call_target});
    Handler around =
        middleware([place](Request& request, ResponseWriter& response) { place->next(request, response); });
    (innermost == nullptr ? outermost : innermost->next) = std::move(around);
    innermost = place;
  }
};

Router::Router() : tree_(std::make_unique<RouteTree>()) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

void Router::handle(std::string_view pattern, Handler handler, const std::source_location& where) {
  tree_->add(pattern, unless_too_large(std::move(handler)), where);
}

void Router::use(Middleware middleware) {
  if (chain_ == nullptr) chain_ = std::make_unique<Chain>();
  chain_->add(middleware);
}

Router::Misses& Router::misses() {
  if (misses_ == nullptr) misses_ = std::make_unique<Misses>();
  return *misses_;
}

void Router::not_found(Handler handler, const std::source_location& where) {
  add_below(misses().not_found, "", unless_too_large(std::move(handler)), where);
}

void Router::method_not_allowed(Handler handler, const std::source_location& where) {
  add_below(misses().method_not_allowed, "", unless_too_large(std::move(handler)), where);
}

RouteGroup Router::group(std::string_view prefix) {
  require_prefix(prefix);
  return RouteGroup(*this, std::string(prefix));
}

void Router::mount(std::string_view prefix, Handler handler, const std::source_location& where) {
  if (prefix != "/") require_prefix(prefix);
  if (prefix.find('{') != std::string_view::npos) {
    throw std::invalid_argument("prefix \"" + std::string(prefix) +
                                "\": no wildcards in the prefix of a mount");
  }
  if (!handler) throw std::invalid_argument("prefix \"" + std::string(prefix) + "\": no handler");
  const std::string cut_off(prefix == "/" ? "" : prefix);
  const std::string pattern = cut_off + "/";
  auto behind_prefix = [prefix = cut_off, handler = std::move(handler)](Request& request,
                                                                        ResponseWriter& response) {
    const WithoutPrefix cut(request.exchange().buffers(), prefix);
    handler(request, response);
  };
  tree_->add(pattern, std::move(behind_prefix), where);
}

void Router::operator()(Request& request, ResponseWriter& response) const {
  ExchangeBuffers& buffers = request.exchange().buffers();
  RouteTarget target = find(*tree_, redirects_, request, buffers);
  if (!target.found && misses_ != nullptr) [[unlikely]]
    target.handler = misses_->handler(target.allowed, request, buffers);
  if (chain_ == nullptr) return answer(target, request, response);
  chain_->call(target, request, response);
}

void RouteGroup::handle(std::string_view pattern, Handler handler, const std::source_location& where) {
  const std::size_t path = path_of(pattern);
  const bool method_only = pattern.empty() || pattern.back() == ' ';
  if (path == pattern.size() && !method_only) {
    throw std::invalid_argument("pattern \"" + std::string(pattern) +
                                "\" in a group: a method and a space, if any, then a path or nothing");
  }
  std::string whole(pattern.substr(0, path));
  whole.append(prefix_).append(pattern.substr(path));
  router_.tree_->add(whole, wrapped(std::move(handler)), where);
}

Handler RouteGroup::wrapped(Handler handler) const {
  if (!handler) return handler;  // refused when it is added
  handler = unless_too_large(std::move(handler));
  for (const std::shared_ptr<Middleware>& one : middleware_ | std::views::reverse) {
    handler = (*one)(std::move(handler));
  }
  return handler;
}

void RouteGroup::not_found(Handler handler, const std::source_location& where) {
  add_below(router_.misses().not_found, prefix_, wrapped(std::move(handler)), where);
}

void RouteGroup::method_not_allowed(Handler handler, const std::source_location& where) {
  add_below(router_.misses().method_not_allowed, prefix_, wrapped(std::move(handler)), where);
}

void RouteGroup::use(Middleware middleware) {
  middleware_.push_back(std::make_shared<Middleware>(std::move(middleware)));
}

RouteGroup RouteGroup::group(std::string_view prefix) const {
  require_prefix(prefix);
  RouteGroup inner(router_, prefix_ + std::string(prefix));
  inner.middleware_ = middleware_;
  return inner;
}

}  // namespace tuza::http
