// The last moment for the fields of a response, for middleware: see before_head() in http/middleware.h.
//
// A hook lies on the stack of the middleware for the time of one call of a handler. It is called when the response begins to
// stream, or by the middleware when the handler has returned and all of the response is still held back.
//
// Thread-unsafe: owned by the handler's goroutine.
#pragma once

namespace tuza::http {

class Exchange;
class Request;
class ResponseWriter;

namespace detail {

class HeadHook {
 public:
  using Function = void (*)(void* argument, ResponseWriter& response);

  // Installs itself in front of the hooks that are installed: the innermost is called first.
  HeadHook(Request& request, ResponseWriter& response, Function function, void* argument);
  ~HeadHook();
  HeadHook(const HeadHook&) = delete;
  HeadHook& operator=(const HeadHook&) = delete;

  // The handler has returned. Nothing is called twice, nor for a response that has no head of ours (hijack()).
  void returned();
  // It has thrown: the server's answer will keep the fields.
  void thrown();

 private:
  friend class http::Exchange;
  void call();

  Exchange& exchange_;
  ResponseWriter& response_;
  const Function function_;
  void* const argument_;
  HeadHook* const before_;
  bool called_ = false;
};

}  // namespace detail
}  // namespace tuza::http
