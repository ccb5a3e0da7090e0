// The code on docs/guide/errors.md.
#include <tuza/net.h>
#include <tuza/tuza.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace errors_page {

using tuza::Result;

Result<void> retry_later() { return {}; }

//! [by_hand]
Result<std::string> first_line(const std::string& path) {
  auto file = tuza::File::open(path);
  if (!file) return std::unexpected(file.error());  // "open notes.txt: Permission denied"
  auto text = file->read_all();
  if (!text) return std::unexpected(text.error());
  return text->substr(0, text->find('\n'));
}
//! [by_hand]

//! [try]
Result<std::string> ask(std::string_view address, std::string_view question) {
  TUZA_TRY(auto conn, tuza::net::dial("tcp", address));
  TUZA_TRY(conn.write_all(question));
  std::string answer(100, '\0');
  TUZA_TRY(const std::size_t size, conn.read(std::span(answer)));
  answer.resize(size);
  return answer;
}
//! [try]

//! [errorf]
Result<std::string> version_of(const std::string& server) {
  auto answer = ask(server, "version\n");
  if (!answer) return std::unexpected(tuza::errorf("version of {}: {}", server, answer.error()));
  if (answer->empty()) return std::unexpected(tuza::errorf("{} has no version", server));
  return answer;
}
//! [errorf]

//! [join]
Result<void> tell_all(const std::vector<std::string>& servers, std::string_view news) {
  std::vector<Result<std::string>> answers;
  for (const std::string& server : servers) answers.push_back(ask(server, news));
  return tuza::join_errors(answers);  // "dial a:80: Connection refused; read b:80: deadline exceeded"
}
//! [join]

Result<void> deciding(const std::string& server) {
  //! [is]
  auto version = version_of(server);
  if (!version) {
    const tuza::Error& error = version.error();
    if (error.is(std::errc::connection_refused)) return retry_later();
    if (error.timeout()) std::puts("too slow");  // a deadline of ours
    std::puts(error.message().c_str());          // "version of db:80: dial db:80: Connection refused"
  }
  //! [is]
  return {};
}

}  // namespace errors_page
