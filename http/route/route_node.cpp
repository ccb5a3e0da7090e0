#include <tuza/http/route/route_node.h>

namespace tuza::http {

const Route* RouteNode::other_route(Method method) const {
  if (const Route* exact = registered(method)) return exact;
  if (method == Method::kHead) {
    if (const Route* get = registered(Method::kGet)) return get;
  }
  return any_method_;
}

RouteNode& RouteNode::add_text(const SegmentText& segment) {
  has_texts_ = true;
  return *texts_.emplace_back(std::make_unique<RouteNode>(this, segment));
}

void RouteNode::add(std::optional<Method> method, Route route) {
  Route* place = &first_;
  if (first_.handler) place = more_routes_.emplace_back(std::make_unique<Route>()).get();
  *place = std::move(route);
  place->pattern = place->text;
  if (method) {
    only_ = place;
    only_method_ = *method;
  }
  (method ? by_method_[static_cast<std::size_t>(*method)] : any_method_) = place;
}

void RouteNode::add_allowed(unsigned& methods) const {
  for (int i = 0; i < kMethodCount; ++i) {
    if (route(static_cast<Method>(i)) != nullptr) methods |= 1u << i;
  }
}

}  // namespace tuza::http
