// The page /debug/sched: sched.html of this folder, which the build embeds into the program.
#pragma once

#include <string_view>

namespace tuza {

std::string_view sched_page();

}  // namespace tuza
