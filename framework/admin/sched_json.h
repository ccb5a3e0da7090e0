// The state of the scheduler as JSON, for the page /debug/sched.
#pragma once

#include <tuza/framework/metrics.h>

#include <string>
#include <string_view>

namespace tuza {

// The JSON lists at most kMachinesMax Ms, and idle ones last if there are more; "threads" counts all Ms. Parks.
inline constexpr std::size_t kMachinesMax = 256;
std::string sched_json(std::string_view service, const Metrics& metrics);

}  // namespace tuza
