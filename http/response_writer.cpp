#include <tuza/http/response_writer.h>

#include <tuza/http/serve/request_loop.h>
#include <tuza/http/status.h>

#include <string>

namespace tuza::http {

void ResponseWriter::status(int code) { loop_.set_status(code); }
void ResponseWriter::header(std::string_view name, std::string_view value) { loop_.add_header(name, value); }
void ResponseWriter::close() { loop_.close_after_response(); }
void ResponseWriter::send(std::string_view content_type, std::string_view body) {
  loop_.send_whole(content_type, body);
}

void ResponseWriter::error(int code) { error(code, std::string(reason_phrase(code)) + "\n"); }
void ResponseWriter::error(int code, std::string_view text) {
  if (!head_sent()) loop_.drop_prepared_response();
  status(code);
  this->text(text);
}

Result<void> ResponseWriter::write(std::string_view data) { return loop_.write_body(data); }
Result<void> ResponseWriter::flush() { return loop_.flush_response(); }
bool ResponseWriter::head_sent() const { return loop_.head_sent(); }
int ResponseWriter::status_code() const { return loop_.status_code(); }
std::uint64_t ResponseWriter::bytes_written() const { return loop_.bytes_written(); }

}  // namespace tuza::http
