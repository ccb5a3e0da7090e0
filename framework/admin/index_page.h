// The page / of the admin address: what is served, with a line about each.
#pragma once

#include <string>
#include <string_view>

namespace tuza {

std::string index_text(std::string_view service);
std::string index_html(std::string_view service);

}  // namespace tuza
