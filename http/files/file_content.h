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
// archives): they have no Last-Modified, and are not compared by it. A date joins no ranges (If-Range) unless it is true.
Validators validators_of(std::string etag, const struct stat& info,
                         std::chrono::system_clock::time_point now);

// Whether the content may be changing right now. Not if the time of modification lies in the future, and has been set there
// at least `settled` ago: the next change brings it back.
bool is_written_lately(const struct stat& info, std::chrono::system_clock::time_point now,
                       std::chrono::nanoseconds settled);
// Whether the last change of the inode, too, lies at least `settled` back.
bool is_settled(const struct stat& info, std::chrono::system_clock::time_point now,
                std::chrono::nanoseconds settled);

// Whether the time of modification is that of the last change, and has not been set afterwards to another one: only then is
// it another one after the next change.
bool has_true_time(const struct stat& info);

}  // namespace tuza::http
