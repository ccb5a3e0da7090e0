// Takes lists in header fields apart: "a, b;q=0.5", with texts in quotes that may contain separators (RFC 9110 5.6).
// Thread-safe; the results are views of the argument.
#pragma once

#include <string_view>

namespace tuza::http {

// Takes the text up to the next `separator` that is not within a quoted string off `list`, and the separator. The result
// has no white space around it, and is empty for an empty item.
std::string_view take_item(std::string_view& list, char separator);

// The last item of a list whose end is trusted, and whose beginning anybody may have written: quotes count from the end, so that
// one that is open in front takes no item in.
std::string_view take_last_item(std::string_view& list, char separator);

// Without the quotes around it, if there are any. Quoted pairs stay as they are.
std::string_view unquoted(std::string_view text);

}  // namespace tuza::http
