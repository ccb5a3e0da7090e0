// Which of the header fields that are set survive when error() discards the body they came with.
//
// Dropped is what describes the discarded body: its type, coding, language, name, place, range, digest, validators, and how
// long it may be cached. "Cache-Control: no-store" forbids instead of describing, and is kept.
#pragma once

#include <string>

namespace tuza::http {

// `fields`: whole lines "Name: value\r\n", without line ends in the values.
void drop_fields_of_body(std::string& fields);

}  // namespace tuza::http
