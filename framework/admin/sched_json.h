// The state of the scheduler as JSON, for the page that draws it.
#pragma once

#include <tuza/framework/metrics.h>

#include <string>
#include <string_view>

namespace tuza {

// Of the Ms those that do something come first, and no more than kMachinesMax are in it; "threads" counts
// all. Parks.
inline constexpr std::size_t kMachinesMax = 256;
std::string sched_json(std::string_view service, const Metrics& metrics);

}  // namespace tuza
