#include <tuza/examples/sqlite_notes/json.h>

#include <nlohmann/json.hpp>

namespace notes {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Note& note) {
  return {{"id", note.id},
          {"title", note.text.title},
          {"body", note.text.body},
          {"created", note.created},
          {"updated", note.updated}};
}

// Replaces invalid UTF-8: an error message may quote text from a client that is not UTF-8.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Copies the string member `name`, if there is one, to `into`. False: it is invalid, and `error` says why.
bool take(const Json& from, const char* name, std::size_t bytes_max, std::string& into, std::string& error) {
  const auto found = from.find(name);
  if (found == from.end()) return true;
  if (!found->is_string()) {
    error = std::string("\"") + name + "\" must be a string";
    return false;
  }
  into = found->get<std::string>();
  if (into.size() <= bytes_max) return true;
  error = std::string("\"") + name + "\" is longer than " + std::to_string(bytes_max) + " bytes";
  return false;
}

}  // namespace

std::expected<NoteText, std::string> parse_note(std::string_view json) {
  Json parsed;
  try {
    parsed = Json::parse(json);
  } catch (const Json::parse_error& error) {
    // The library's text names its own exceptions. Its position counts from 1, and may be one past the end.
    return std::unexpected("body is not valid JSON at byte " + std::to_string(error.byte));
  } catch (const Json::exception&) {
    return std::unexpected(std::string("body has a number that is too large"));
  }
  if (!parsed.is_object()) return std::unexpected(std::string("expected an object, {\"title\": \"...\"}"));
  for (const auto& [name, value] : parsed.items()) {
    if (name != "title" && name != "body") return std::unexpected("unknown member \"" + name + "\"");
  }
  NoteText text;
  std::string error;
  if (!take(parsed, "title", NoteText::kTitleBytesMax, text.title, error) ||
      !take(parsed, "body", NoteText::kBodyBytesMax, text.body, error)) {
    return std::unexpected(std::move(error));
  }
  if (text.title.empty()) return std::unexpected(std::string("\"title\" is missing or empty"));
  return text;
}

std::string to_json(const Note& note) { return text_of(json_of(note)); }

std::string to_json(const Page& page) {
  Json list = Json::array();
  for (const Note& note : page.notes) list.push_back(json_of(note));
  return text_of({{"notes", std::move(list)}, {"next", page.next ? Json(*page.next) : Json(nullptr)}});
}

std::string error_json(std::string_view message) { return text_of({{"error", message}}); }

}  // namespace notes
