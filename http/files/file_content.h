// What a response consists of that represents a file: facts about the file, and where its bytes are.
#pragma once

#include <tuza/http/files/preconditions.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

struct stat;
struct timespec;

namespace tuza::http {

// The views belong to the caller, and live until the response has been sent.
struct Representation {
  std::uint64_t size = 0;  // bytes
  Validators validators;
  std::string_view content_type;
  std::string_view content_encoding = {};  // "br"; empty: none
  std::string_view cache_control = {};     // value of that field; empty: no field
  bool varies = false;                     // another client may get another coding: Vary
};

// Either in memory or in a file.
struct FileContent {
  int fd = -1;  // open for reading; -1: `bytes`
  std::string_view bytes = {};
};

// Within this time of a change, a further one may leave no trace: file systems record times in ticks of some milliseconds,
// a few in seconds, and a second change within one tick does not alter the time, nor, if the size stays the same, anything
// else.
inline constexpr std::chrono::seconds kSettled{2};

// The time, or the nearest one that fits into 64 bits: anybody may give a file a time in the year 2286.
std::chrono::sys_time<std::chrono::nanoseconds> time_of(const struct timespec& time);

// `etag`: content_tag.h. Files of reproducible builds have a time that says nothing about them (1970; 1980, the first of zip
// archives): they have no Last-Modified, and are not compared by it.
Validators validators_of(std::string etag, const struct stat& info,
                         std::chrono::system_clock::time_point now);

// Whether the last changes of the content and of the inode lie at least `settled` back.
bool is_settled(const struct stat& info, std::chrono::system_clock::time_point now,
                std::chrono::nanoseconds settled);

}  // namespace tuza::http
