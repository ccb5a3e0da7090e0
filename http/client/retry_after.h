// The pause that a response asks for: RFC 9110 10.2.3.
#pragma once

#include <tuza/http/client.h>

#include <chrono>
#include <optional>

namespace tuza::http {

// nullopt: it asks for none, or in words that are neither seconds nor a date. A date counts from the Date of the response, so that
// the clocks of the two need not agree; without one, from the system's clock.
[[nodiscard]] std::optional<std::chrono::seconds> retry_after(const ClientResponse& response);

}  // namespace tuza::http
