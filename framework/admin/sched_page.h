// The page behind /debug/sched: sched.html of this folder, which the build makes a part of the program.
#pragma once

#include <string_view>

namespace tuza {

std::string_view sched_page();

}  // namespace tuza
