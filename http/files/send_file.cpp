#include <tuza/http/files/send_file.h>

#include <tuza/http/files/http_date.h>
#include <tuza/http/files/ranges.h>
#include <tuza/http/multipart/boundary.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/vary.h>
#include <tuza/http/wire/chars.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {
namespace {

using namespace std::chrono;

std::string content_range(const ByteRange& part, std::uint64_t size) {
  return "bytes " + std::to_string(part.first) + "-" + std::to_string(part.last()) + "/" +
         std::to_string(size);
}

// One body, written piece by piece. After an error nothing more is written: the body is then shorter than announced, and
// the client sees the connection end.
class Body {
 public:
  Body(ResponseWriter& response, const FileContent& content) : response_(response), content_(content) {}

  void text(std::string_view text) { ok_ = ok_ && response_.write(text).has_value(); }
  void bytes(const ByteRange& part) {
    if (!ok_) return;
    if (content_.fd >= 0) {
      ok_ = response_.write_file({content_.fd, part.first, part.length}).has_value();
    } else {
      text(content_.bytes.substr(part.first, part.length));
    }
  }

 private:
  ResponseWriter& response_;
  const FileContent& content_;
  bool ok_ = true;
};

// RFC 9110 14.6.
void send_parts(ResponseWriter& response, const Representation& representation, const FileContent& content,
                const std::vector<ByteRange>& parts) {
  const std::string boundary = random_boundary();
  std::vector<std::string> heads;
  const std::string end = "\r\n--" + boundary + "--\r\n";
  std::uint64_t length = end.size();
  for (const ByteRange& part : parts) {
    heads.push_back("\r\n--" + boundary + "\r\nContent-Type: " + std::string(representation.content_type) +
                    "\r\nContent-Range: " + content_range(part, representation.size) + "\r\n\r\n");
    length += heads.back().size() + part.length;
  }
  response.set_header("Content-Type", "multipart/byteranges; boundary=" + boundary);
  response.set_header("Content-Length", std::to_string(length));
  Body body(response, content);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    body.text(heads[i]);
    body.bytes(parts[i]);
  }
  body.text(end);
}

void send_range(ResponseWriter& response, const Representation& representation, const FileContent& content,
                const ByteRange& part) {
  response.set_header("Content-Type", representation.content_type);
  response.set_header("Content-Length", std::to_string(part.length));
  if (part.length > 0) Body(response, content).bytes(part);
}

// What the program or middleware has set already stays.
void set_if_missing(ResponseWriter& response, std::string_view name, std::string_view value) {
  if (!response.header(name)) response.set_header(name, value);
}

void describe(ResponseWriter& response, const Representation& representation) {
  if (!representation.cache_control.empty()) {
    set_if_missing(response, "Cache-Control", representation.cache_control);
  }
  set_if_missing(response, "ETag", representation.validators.etag);
  if (representation.validators.has_date) {
    set_if_missing(response, "Last-Modified", format_http_date(representation.validators.last_modified));
  }
  if (representation.varies) add_vary(response, response.headers(), "Accept-Encoding");
}

// A tag or date that the program has set is that of the response, and so what conditions are about.
Validators validators_in_force(const ResponseWriter& response, Validators validators, sys_seconds now) {
  if (const auto tag = response.header("ETag")) validators.etag = *tag;
  if (const auto date = response.header("Last-Modified")) {
    const std::optional<sys_seconds> parsed = parse_http_date(*date, now);
    validators.has_date = parsed.has_value();
    validators.date_is_strong = false;
    if (parsed) validators.last_modified = *parsed;
  }
  return validators;
}

void name_coding(ResponseWriter& response, const Representation& representation) {
  if (!representation.content_encoding.empty()) {
    response.set_header("Content-Encoding", representation.content_encoding);
  }
}

}  // namespace

bool asks_for_more_than_the_file(const Request& request) {
  for (const HeaderField field : request.headers()) {
    const char first = field.name.empty() ? '\0' : lower(field.name.front());
    if (first == 'i' && field.name.size() > 2 && equals_ignoring_case(field.name.substr(0, 3), "If-")) {
      return true;
    }
    if (first == 'r' && equals_ignoring_case(field.name, "Range")) return true;
  }
  return false;
}

void send_whole_file(ResponseWriter& response, const Representation& representation,
                     const FileContent& content) {
  name_coding(response, representation);
  send_range(response, representation, content, {0, representation.size});
}

void send_file(const Request& request, ResponseWriter& response, const Representation& representation,
               const FileContent& content) {
  const auto now = floor<seconds>(system_clock::now());
  const Validators validators = validators_in_force(response, representation.validators, now);
  const Condition condition = check_conditions(request, validators, now);
  if (condition == Condition::kFailed) return response.error(412);
  if (condition == Condition::kNotModified) {
    describe(response, representation);
    return answer_not_modified(response);
  }
  const std::uint64_t size = representation.size;
  RangeRequest ranges;
  // RFC 9110 14.2: ranges are for GET only.
  if (const auto field = combined_header(request, "Range");
      field && request.method() == Method::kGet && if_range_holds(request, validators, now)) {
    ranges = parse_range(*field, size);
  }
  set_if_missing(response, "Accept-Ranges", "bytes");
  if (ranges.kind == RangeRequest::Kind::kUnsatisfiable) {  // must not be cached like the file
    request.exchange().drop_prepared_body();
    response.status(416);
    response.set_header("Content-Range", "bytes */" + std::to_string(size));
    return response.text("Range Not Satisfiable\n");
  }
  describe(response, representation);
  // A multipart answer is not coded as its parts are, and its Content-Encoding would say so.
  const bool coded_parts = ranges.parts.size() > 1 && !representation.content_encoding.empty();
  if (ranges.kind == RangeRequest::Kind::kWhole || coded_parts) {
    return send_whole_file(response, representation, content);
  }
  name_coding(response, representation);
  response.status(206);
  if (ranges.parts.size() > 1) return send_parts(response, representation, content, ranges.parts);
  response.set_header("Content-Range", content_range(ranges.parts[0], size));
  send_range(response, representation, content, ranges.parts[0]);
}

}  // namespace tuza::http
