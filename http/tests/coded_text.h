// Compressed texts for tests, of every coding that this build has.
#pragma once

#include <tuza/http/codec/codec.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {

inline std::vector<std::string> codings() {
  std::vector<std::string> all;
  for (const char* name : {"gzip", "br", "zstd"}) {
    if (coding_named(name)) all.emplace_back(name);
  }
  return all;
}

inline std::string encoded(std::string_view coding, std::string_view text) {
  const auto encoder = make_encoder(*coding_named(coding), 0);
  std::string out, buffer(700, '\0');
  for (;;) {
    const Encoder::Progress progress = encoder->encode(text, buffer, Encoder::Step::kEnd);
    out.append(buffer, 0, progress.produced);
    if (progress.done) return out;
  }
}

inline std::string words(std::size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += "line " + std::to_string(i * i) + " of some text\n";
  text.resize(bytes);
  return text;
}

}  // namespace tuza::http::testing
