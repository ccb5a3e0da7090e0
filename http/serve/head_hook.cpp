#include <tuza/http/detail/head_hook.h>

#include <tuza/http/request.h>
#include <tuza/http/serve/exchange.h>

namespace tuza::http::detail {

HeadHook::HeadHook(Request& request, ResponseWriter& response, Function function, void* argument)
    : exchange_(request.exchange()),
      response_(response),
      function_(function),
      argument_(argument),
      before_(exchange_.exchange_head_hook(this)) {}
HeadHook::~HeadHook() { exchange_.exchange_head_hook(before_); }

void HeadHook::call() {
  if (called_) return;
  called_ = true;
  function_(argument_, response_);
}

void HeadHook::returned() {
  if (called_ || !exchange_.reopen_response()) return;
  call();
  exchange_.settle_response();
}

void HeadHook::thrown() {
  if (!exchange_.begun()) call();
}

}  // namespace tuza::http::detail
