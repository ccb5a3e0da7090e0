// The data types of the service: a note and a page of notes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace notes {

struct NoteText {
  static constexpr std::size_t kTitleBytesMax = 200;
  static constexpr std::size_t kBodyBytesMax = 50'000;
  std::string title, body;
};

struct Note {
  std::int64_t id = 0;
  NoteText text;
  std::string created, updated;  // "2026-11-22T04:05:06.789Z"
};

struct Page {
  std::vector<Note> notes;
  std::optional<std::int64_t> next;  // set if there are more notes: they follow this id
};

}  // namespace notes
