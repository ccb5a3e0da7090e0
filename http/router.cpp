#include <tuza/http/router.h>

#include <tuza/http/route/pattern.h>
#include <tuza/http/serve/request_loop.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::http {
namespace {

// True if `segment`, percent-encoded, decodes to `text`.
bool matches(std::string_view text, std::string_view segment) {
  if (segment.find('%') == std::string_view::npos) return text == segment;
  std::size_t at = 0;
  for (std::size_t i = 0; i < segment.size(); ++i, ++at) {
    char c = segment[i];
    if (is_percent_escape(segment, i)) {
      c = static_cast<char>(hex_value(segment[i + 1]) * 16 + hex_value(segment[i + 2]));
      i += 2;
    }
    if (at == text.size() || text[at] != c) return false;
  }
  return at == text.size();
}

}  // namespace

// A node of the pattern tree: one segment, shared by all patterns with the same beginning.
struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> texts;
  std::unique_ptr<Node> name;  // {name}
  std::unique_ptr<Node> rest;  // {name...}; a leaf

  // For patterns that end at this node: the handler, and the names of the wildcards in order.
  struct Route {
    Handler handler;
    std::vector<std::string> names;
  };
  std::array<std::unique_ptr<Route>, kMethodCount> by_method;
  std::unique_ptr<Route> any_method;

  [[nodiscard]] const Route* route(Method method) const;
  void add_allowed(unsigned& methods) const;
};

const Router::Node::Route* Router::Node::route(Method method) const {
  if (const auto& exact = by_method[static_cast<std::size_t>(method)]) return exact.get();
  if (method == Method::kHead) {
    if (const auto& get = by_method[static_cast<std::size_t>(Method::kGet)]) return get.get();
  }
  return any_method.get();
}

void Router::Node::add_allowed(unsigned& methods) const {
  for (int i = 0; i < kMethodCount; ++i) {
    if (route(static_cast<Method>(i)) != nullptr) methods |= 1u << i;
  }
}

namespace {

// The search for one request: depth first, the more specific branch first, with backtracking.
template <class Node>
class Search {
 public:
  Search(ExchangeBuffers& buffers, Method method) : buffers_(buffers), method_(method) {}

  // `rest` is the remaining path: empty, or beginning with the slash before the next segment.
  const typename Node::Route* find(const Node& node, std::string_view rest, std::size_t values) {
    if (rest.empty()) return accept(node, values);
    const std::size_t slash = std::min(rest.find('/', 1), rest.size());
    const std::string_view segment = rest.substr(1, slash - 1);
    const std::string_view behind = rest.substr(slash);
    if (!segment.empty()) {
      if (const Node* child = text_child(node, segment)) {
        if (const auto* route = find(*child, behind, values)) return route;
      }
      if (node.name != nullptr) {
        values_[values] = segment;
        if (const auto* route = find(*node.name, behind, values + 1)) return route;
      }
    }
    if (node.rest == nullptr) return nullptr;
    values_[values] = rest.substr(1);
    return accept(*node.rest, values + 1);
  }

  [[nodiscard]] unsigned allowed() const { return allowed_; }

 private:
  static const Node* text_child(const Node& node, std::string_view segment) {
    if (segment.find('%') == std::string_view::npos) {
      const auto found = node.texts.find(segment);
      return found == node.texts.end() ? nullptr : found->second.get();
    }
    for (const auto& [text, child] : node.texts) {
      if (matches(text, segment)) return child.get();
    }
    return nullptr;
  }

  const typename Node::Route* accept(const Node& node, std::size_t values) {
    const auto* route = node.route(method_);
    if (route == nullptr) {
      node.add_allowed(allowed_);
      return nullptr;
    }
    buffers_.path_value_count = 0;
    for (std::size_t i = 0; i < values; ++i) {
      if (route->names[i].empty()) continue;
      buffers_.path_values[buffers_.path_value_count++] = {route->names[i], values_[i]};
    }
    return route;
  }

  ExchangeBuffers& buffers_;
  const Method method_;
  unsigned allowed_ = 0;  // one bit per method that would have found a handler
  std::array<std::string_view, ExchangeBuffers::kPathValuesMax + 1> values_;
};

std::string allow_list(unsigned methods) {
  std::string list;
  for (int i = 0; i < kMethodCount; ++i) {
    if ((methods & (1u << i)) == 0) continue;
    if (!list.empty()) list += ", ";
    list += name(static_cast<Method>(i));
  }
  return list;
}

}  // namespace

Router::Router() : root_(std::make_unique<Node>()) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

void Router::handle(std::string_view text, Handler handler) {
  Pattern pattern = Pattern::parse(text);
  if (!handler) throw std::invalid_argument("pattern \"" + std::string(text) + "\": no handler");
  Node* node = root_.get();
  std::vector<std::string> names;
  for (Pattern::Segment& segment : pattern.segments) {
    std::unique_ptr<Node>& child = segment.kind == Pattern::Kind::kText   ? node->texts[segment.text]
                                   : segment.kind == Pattern::Kind::kName ? node->name
                                                                          : node->rest;
    if (child == nullptr) child = std::make_unique<Node>();
    if (segment.kind != Pattern::Kind::kText) names.push_back(std::move(segment.text));
    node = child.get();
  }
  std::unique_ptr<Node::Route>& slot =
      pattern.method ? node->by_method[static_cast<std::size_t>(*pattern.method)] : node->any_method;
  if (slot != nullptr) {
    throw std::invalid_argument("pattern \"" + std::string(text) +
                                "\": another pattern matches the same requests");
  }
  slot = std::make_unique<Node::Route>(std::move(handler), std::move(names));
}

void Router::operator()(Request& request, ResponseWriter& response) const {
  ExchangeBuffers& buffers = request.loop().buffers();
  const std::string_view path = request.path();
  Search<Node> search(buffers, request.method());
  // "/" has no segments. "*" is not a path, and only OPTIONS can request it.
  const std::string_view rest = path == "/" ? std::string_view{} : path;
  if (path != "*") {
    if (const Node::Route* route = search.find(*root_, rest, 0)) {
      route->handler(request, response);
      return;
    }
    if (search.allowed() == 0) return response.error(404);
  }
  unsigned allowed = search.allowed();
  if (path == "*") {
    // The methods that some resource may support. CONNECT is not among them: it gets 501.
    allowed = ((1u << kMethodCount) - 1) & ~(1u << static_cast<int>(Method::kConnect));
  }
  allowed |= 1u << static_cast<int>(Method::kOptions);
  response.header("Allow", allow_list(allowed));
  if (request.method() == Method::kOptions) {
    response.status(204);
    return;
  }
  response.status(405);
  response.text("Method Not Allowed\n");
}

}  // namespace tuza::http
