// The fields of the access log's lines (middleware/access_log.h). Thread-safe.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tuza::http::detail {

void append_decimal(std::string& line, std::uint64_t number);
// "[22/Nov/2026:02:52:30 +0000]", in every locale.
void append_apache_time(std::string& line, std::chrono::system_clock::time_point time);
// "2026-11-22T02:52:30.123Z".
void append_json_time(std::string& line, std::chrono::system_clock::time_point time);
// A field that ends at a space; "-" if it is empty.
void append_word(std::string& line, std::string_view text);
// A space and a quoted field; "-" if it is empty.
void append_quoted(std::string& line, std::string_view text);
// The host of "192.0.2.1:54102" and "[::1]:54102".
std::string_view without_port(std::string_view remote);
// ,"name":"text", unless the text is empty.
void append_json_text(std::string& line, std::string_view name, std::string_view text);
// ,"name":number
void append_json_number(std::string& line, std::string_view name, std::uint64_t number);

}  // namespace tuza::http::detail
