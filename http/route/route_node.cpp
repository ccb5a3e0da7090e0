#include <tuza/http/route/route_node.h>

namespace tuza::http {

const Route* RouteNode::other_route(Method method) const {
  if (const Route* exact = registered(method)) return exact;
  if (method == Method::kHead) {
    if (const Route* get = registered(Method::kGet)) return get;
  }
  return any_method_.get();
}

void RouteNode::add(std::optional<Method> method, std::unique_ptr<Route> route) {
  if (method) {
    only_ = route.get();
    only_method_ = *method;
  }
  (method ? by_method_[static_cast<std::size_t>(*method)] : any_method_) = std::move(route);
}

void RouteNode::add_allowed(unsigned& methods) const {
  for (int i = 0; i < kMethodCount; ++i) {
    if (route(static_cast<Method>(i)) != nullptr) methods |= 1u << i;
  }
}

}  // namespace tuza::http
