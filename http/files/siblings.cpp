#include <tuza/http/files/siblings.h>

#include <tuza/http/negotiate.h>
#include <tuza/http/request.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

namespace tuza::http {
namespace {

struct Suffix {
  std::string_view coding, suffix;
};
constexpr std::array<Suffix, 3> kSuffixes{{{"br", ".br"}, {"zstd", ".zst"}, {"gzip", ".gz"}}};
constexpr std::size_t kFieldsMax = 8;

const Suffix* suffix_of(std::string_view coding) {
  const auto found =
      std::ranges::find_if(kSuffixes, [coding](const Suffix& one) { return one.coding == coding; });
  return found == kSuffixes.end() ? nullptr : &*found;
}

}  // namespace

void check_codings(const std::vector<std::string>& codings) {
  for (auto at = codings.begin(); at != codings.end(); ++at) {
    if (suffix_of(*at) == nullptr || std::find(codings.begin(), at, *at) != at) {
      throw std::invalid_argument("FileServer: unknown or repeated coding \"" + *at + "\"");
    }
  }
}

std::optional<Sibling> find_sibling(const Request& request, FileStore& store, const std::string& path,
                                    const FoundFile& original, const std::vector<std::string>& offered) {
  std::array<std::string_view, kFieldsMax> fields;
  std::size_t field_count = 0;
  for (const HeaderField field : request.headers()) {
    if (field_count < kFieldsMax && equals_ignoring_case(field.name, "Accept-Encoding")) {
      fields[field_count++] = field.value;
    }
  }
  if (field_count == 0) return std::nullopt;
  std::array<std::string_view, kSuffixes.size()> left;
  std::size_t count = 0;
  for (const std::string& coding : offered) left[count++] = coding;
  while (count > 0) {
    const auto coding = choose_encoding(std::span(fields).first(field_count), std::span(left).first(count));
    const Suffix* const chosen = coding ? suffix_of(*coding) : nullptr;
    if (chosen == nullptr) return std::nullopt;  // the client prefers the file itself
    FoundFile file = store.find(path + std::string(chosen->suffix), true);
    // In whole seconds: brotli gives its output the time of the input, but without the fraction.
    if (file.is_file() && file.modified_s() >= original.modified_s()) {
      return Sibling{chosen->coding, std::move(file)};
    }
    count = static_cast<std::size_t>(std::remove(left.begin(), left.begin() + count, *coding) - left.begin());
  }
  return std::nullopt;
}

}  // namespace tuza::http
