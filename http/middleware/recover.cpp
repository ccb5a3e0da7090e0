#include <tuza/http/middleware/recover.h>

#include <tuza/http/middleware/detail/text.h>
#include <tuza/http/negotiate.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/detail/exception_text.h>

#include <cxxabi.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

namespace tuza::http {
namespace {

constexpr std::size_t kWhatBytesMax = 4096;

std::string readable(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return text != nullptr ? text.get() : type.name();
}

std::string_view preferred_type(const Request& request) {
  constexpr std::size_t kFieldsMax = 8;
  constexpr std::array<std::string_view, 3> kOffers{"text/plain", "text/html", "application/json"};
  std::array<std::string_view, kFieldsMax> fields;
  std::size_t count = 0;
  for (const HeaderField field : request.headers()) {
    if (count < kFieldsMax && equals_ignoring_case(field.name, "Accept")) fields[count++] = field.value;
  }
  return choose_media_type(std::span(fields).first(count), kOffers).value_or(kOffers[0]);
}

// `type`: empty unless in development.
void answer_thrown(Request& request, ResponseWriter& response, std::string_view type, std::string_view what) {
  request.exchange().drop_prepared_body();
  const std::string_view wanted = preferred_type(request);
  const bool details = !type.empty();
  if (wanted == "application/json") {
    std::string body = R"({"error":"Internal Server Error","status":500)";
    if (details) {
      body.append(R"(,"type":")").append(detail::json_escaped(type));
      body.append(R"(","what":")").append(detail::json_escaped(what)).append("\"");
    }
    return response.json(500, body + "}\n");
  }
  if (wanted == "text/html") {
    std::string body =
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>500 Internal Server "
        "Error</title>\n"
        "<h1>Internal Server Error</h1>\n";
    if (details) {
      body.append("<p>").append(detail::html_escaped(request.method_name())).append(" ");
      body.append(detail::html_escaped(request.target())).append("\n<p><b>");
      body.append(detail::html_escaped(type)).append("</b>\n<pre>");
      body.append(detail::html_escaped(what)).append("</pre>\n");
    }
    return response.html(500, body + "</html>\n");
  }
  std::string body = "Internal Server Error\n";
  if (details) body.append(type).append(": ").append(what).append("\n");
  response.text(500, body);
}

}  // namespace

Middleware recover(RecoverOptions options) {
  return [options](Handler next) -> Handler {
    return [options, next = std::move(next)](Request& request, ResponseWriter& response) {
      try {
        next(request, response);
      } catch (const StatusError&) {
        throw;
      } catch (const std::exception& e) {
        const bool is_error = dynamic_cast<const std::bad_expected_access<Error>*>(&e) != nullptr;
        if (response.head_sent() || (is_error && request.exchange().needs_no_answer())) throw;
        const std::string what = tuza::detail::exception_text(e).substr(0, kWhatBytesMax);
        request.exchange().report_thrown(what);
        answer_thrown(request, response, options.development ? readable(typeid(e)) : "", what);
      } catch (...) {
        const std::type_info* const type = abi::__cxa_current_exception_type();
        if (type == nullptr || response.head_sent()) throw;  // goexit() has no type
        request.exchange().report_thrown("an exception not derived from std::exception");
        answer_thrown(request, response, options.development ? readable(*type) : "", "");
      }
    };
  };
}

}  // namespace tuza::http
