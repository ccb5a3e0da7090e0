#include <tuza/http/files/send_file.h>

#include <sys/stat.h>
#include <tuza/http/files/http_date.h>
#include <tuza/http/files/preconditions.h>
#include <tuza/http/files/ranges.h>
#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tuza::http {
namespace {

using namespace std::chrono;

constexpr std::size_t kPieceBytes = 64 << 10;
// File systems record times in ticks of some milliseconds, a few in seconds: a second change within one tick
// does not alter the time, nor, if the size stays the same, anything else.
constexpr auto kSettled = seconds(2);

// "16f-a0-1234.5": inode, size and time of modification (seconds, nanoseconds), in hexadecimal.
Validators validators_of(const struct stat& info, system_clock::time_point now) {
  const auto modified =
      sys_time<nanoseconds>(seconds(info.st_mtim.tv_sec) + nanoseconds(info.st_mtim.tv_nsec));
  const bool settled = modified + kSettled <= now;
  std::array<char, 80> tag;
  const int n = std::snprintf(
      tag.data(), tag.size(), "%s\"%llx-%llx-%llx.%lx\"", settled ? "" : "W/",
      static_cast<unsigned long long>(info.st_ino), static_cast<unsigned long long>(info.st_size),
      static_cast<unsigned long long>(info.st_mtim.tv_sec), static_cast<unsigned long>(info.st_mtim.tv_nsec));
  // RFC 9110 8.8.2.1: not later than the response itself.
  return {.etag = std::string(tag.data(), static_cast<std::size_t>(n)),
          .last_modified = std::min(floor<seconds>(modified), floor<seconds>(now)),
          .date_is_strong = settled};
}

std::string content_range(const ByteRange& part, std::uint64_t size) {
  return "bytes " + std::to_string(part.first) + "-" + std::to_string(part.last()) + "/" +
         std::to_string(size);
}

// One body, written piece by piece. After an error nothing more is written; the connection is then closed,
// because the body is shorter than announced.
class Body {
 public:
  // `largest`: the size in bytes of its largest part.
  Body(ResponseWriter& response, const OpenFile& file, std::uint64_t largest)
      : response_(response),
        file_(file),
        buffer_bytes_(std::min<std::uint64_t>(largest, kPieceBytes)),
        buffer_(std::make_unique_for_overwrite<char[]>(buffer_bytes_)) {}

  void text(std::string_view text) { ok_ = ok_ && response_.write(text).has_value(); }
  void bytes(const ByteRange& part) {
    if (!ok_) return;
    for (std::uint64_t done = 0; done < part.length;) {
      const std::size_t want = std::min<std::uint64_t>(part.length - done, buffer_bytes_);
      const long n = file_.pread(std::span(buffer_.get(), want), part.first + done);
      const bool whole = n == static_cast<long>(want);
      if (!whole) response_.close();
      ok_ = n > 0 && response_.write({buffer_.get(), static_cast<std::size_t>(n)}).has_value() && whole;
      if (!ok_) return;
      done += want;
    }
  }

 private:
  ResponseWriter& response_;
  const OpenFile& file_;
  const std::size_t buffer_bytes_;
  const std::unique_ptr<char[]> buffer_;
  bool ok_ = true;
};

// Unpredictable: a file cannot have been prepared to contain the boundary.
std::string random_boundary() {
  std::random_device random;
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text.data();
}

// RFC 9110 14.6.
void send_parts(ResponseWriter& response, const OpenFile& file, std::uint64_t size,
                std::string_view content_type, const std::vector<ByteRange>& parts) {
  const std::string boundary = random_boundary();
  std::vector<std::string> heads;
  const std::string end = "\r\n--" + boundary + "--\r\n";
  std::uint64_t length = end.size(), largest = 0;
  for (const ByteRange& part : parts) {
    heads.push_back("\r\n--" + boundary + "\r\nContent-Type: " + std::string(content_type) +
                    "\r\nContent-Range: " + content_range(part, size) + "\r\n\r\n");
    length += heads.back().size() + part.length;
    largest = std::max(largest, part.length);
  }
  response.header("Content-Type", "multipart/byteranges; boundary=" + boundary);
  response.header("Content-Length", std::to_string(length));
  Body body(response, file, largest);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    body.text(heads[i]);
    body.bytes(parts[i]);
  }
  body.text(end);
}

void send_range(ResponseWriter& response, const OpenFile& file, std::string_view content_type,
                const ByteRange& part) {
  response.header("Content-Type", content_type);
  response.header("Content-Length", std::to_string(part.length));
  Body(response, file, part.length).bytes(part);
}

}  // namespace

void send_file(Request& request, ResponseWriter& response, const OpenFile& file, const struct stat& info,
               std::string_view content_type, std::string_view cache_control) {
  const auto now = system_clock::now();
  const Validators validators = validators_of(info, now);
  const Condition condition = check_conditions(request, validators, floor<seconds>(now));
  if (condition == Condition::kFailed) return response.error(412);
  const auto describe = [&] {
    if (!cache_control.empty()) response.header("Cache-Control", cache_control);
    response.header("ETag", validators.etag);
    response.header("Last-Modified", format_http_date(validators.last_modified));
  };
  if (condition == Condition::kNotModified) {
    describe();
    return response.status(304);
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  RangeRequest ranges;
  // RFC 9110 14.2: ranges are for GET only.
  if (const auto field = combined_header(request, "Range");
      field && request.method() == Method::kGet && if_range_holds(request, validators, floor<seconds>(now))) {
    ranges = parse_range(*field, size);
  }
  response.header("Accept-Ranges", "bytes");
  if (ranges.kind != RangeRequest::Kind::kUnsatisfiable) describe();
  switch (ranges.kind) {
    case RangeRequest::Kind::kUnsatisfiable:  // does not describe the file, and must not be cached like it
      response.status(416);
      response.header("Content-Range", "bytes */" + std::to_string(size));
      return response.text("Range Not Satisfiable\n");
    case RangeRequest::Kind::kParts:
      response.status(206);
      if (ranges.parts.size() > 1) return send_parts(response, file, size, content_type, ranges.parts);
      response.header("Content-Range", content_range(ranges.parts[0], size));
      return send_range(response, file, content_type, ranges.parts[0]);
    case RangeRequest::Kind::kWhole: break;
  }
  if (request.method() == Method::kHead) {
    response.header("Content-Type", content_type);
    return response.header("Content-Length", std::to_string(size));
  }
  send_range(response, file, content_type, {0, size});
}

}  // namespace tuza::http
