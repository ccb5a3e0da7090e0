// Conversion of notes from and to JSON. Thread-safe.
#pragma once

#include <tuza/examples/sqlite_notes/note.h>

#include <expected>
#include <string>
#include <string_view>

namespace notes {

// Parses {"title": ..., "body": ...}, where the body is optional. The error is a message for the client; bytes
// are counted from 1.
std::expected<NoteText, std::string> parse_note(std::string_view json);

std::string to_json(const Note& note);
std::string to_json(const Page& page);
// {"error": "..."}
std::string error_json(std::string_view message);

}  // namespace notes
