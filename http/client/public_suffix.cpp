#include <tuza/http/client/public_suffix.h>

#ifdef TUZA_HTTP_PSL
#include <libpsl.h>

namespace tuza::http {

bool is_public_suffix(std::string domain) {
  // The list has no names with a final dot: "co.uk." would be nobody's suffix.
  while (domain.ends_with('.')) domain.pop_back();
  // The system's list if it is newer than the one in the library. Never freed: other static objects may still ask.
  static const psl_ctx_t* const list = psl_latest(nullptr);
  return list == nullptr || psl_is_public_suffix(list, domain.c_str()) != 0;
}

bool knows_public_suffixes() { return true; }

}  // namespace tuza::http

#else

namespace tuza::http {

bool is_public_suffix(std::string) { return true; }

bool knows_public_suffixes() { return false; }

}  // namespace tuza::http

#endif
