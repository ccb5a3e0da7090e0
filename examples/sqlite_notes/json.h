// Notes as JSON. Thread-safe.
#pragma once

#include <tuza/examples/sqlite_notes/note.h>

#include <expected>
#include <string>
#include <string_view>

namespace notes {

// {"title": ..., "body": ...}, the body optional; or what is wrong with it, for the client to read.
std::expected<NoteText, std::string> parse_note(std::string_view json);

std::string to_json(const Note& note);
std::string to_json(const Page& page);
// {"error": "..."}
std::string error_json(std::string_view message);

}  // namespace notes
