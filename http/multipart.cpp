#include <tuza/http/multipart.h>

#include <tuza/http/multipart/body.h>
#include <tuza/http/multipart/disposition.h>
#include <tuza/http/request.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/status_error.h>
#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <span>

namespace tuza::http {

// The body of the request, within the limit of the whole.
class Multipart::Source final : public MultipartSource {
 public:
  Source(Request& req, std::uint64_t bytes_max) : req_(req), bytes_max_(bytes_max) {
    if (req.content_length().value_or(0) > bytes_max) throw StatusError(413);
  }

  std::size_t read(std::span<char> into) override {
    const Result<std::size_t> n = req_.read_body(std::as_writable_bytes(into));
    if (!n) throw StatusError(std::max(req_.exchange().status_code(), 400));  // as the server would answer
    bytes_ += *n;
    if (bytes_ > bytes_max_) throw StatusError(413);
    return *n;
  }

 private:
  Request& req_;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
};

namespace {

std::string boundary_of(const Request& req) {
  const std::string_view type = req.header("Content-Type").value_or("");
  std::optional<std::string> boundary = multipart_boundary(type);
  if (boundary) return *std::move(boundary);
  if (equals_ignoring_case(trim(type.substr(0, type.find(';'))), "multipart/form-data")) {
    throw StatusError(400, "multipart/form-data needs a boundary");
  }
  throw StatusError(415, "the body must be multipart/form-data");
}

}  // namespace

Multipart::Multipart(Request& req, const MultipartLimits& limits)
    : limits_(limits),
      source_(std::make_unique<Source>(req, limits.total_bytes_max)),
      body_(std::make_unique<MultipartBody>(*source_, boundary_of(req), limits.header_bytes_max)),
      part_(*body_) {}

Multipart::~Multipart() = default;

Part* Multipart::next() {
  if (parts_ > 0) {
    while (!part_.read().empty()) {
    }
  }
  if (!body_->next_part()) return nullptr;
  if (++parts_ > limits_.parts_max) throw StatusError(413, "the form has too many parts");
  part_.begin(limits_.file_bytes_max, limits_.field_bytes_max);
  return &part_;
}

void Part::begin(std::uint64_t file_bytes_max, std::size_t field_bytes_max) {
  const std::string_view head = body_.head();
  if (!is_part_head(head)) throw StatusError(400, "the header of a part is malformed");
  std::optional<Disposition> disposition =
      parse_disposition(part_field(head, "Content-Disposition").value_or(""));
  if (!disposition) throw StatusError(400, "a part has no Content-Disposition with a name");
  const std::string_view encoding = part_field(head, "Content-Transfer-Encoding").value_or("binary");
  // RFC 7578 4.7: nobody sends others, and to store the encoded text would be wrong.
  if (!equals_ignoring_case(encoding, "binary") && !equals_ignoring_case(encoding, "8bit") &&
      !equals_ignoring_case(encoding, "7bit")) {
    throw StatusError(415, "a part has a Content-Transfer-Encoding");
  }
  name_ = std::move(disposition->name);
  file_name_ = std::move(disposition->file_name);
  bytes_ = 0;
  bytes_max_ = file_name_ ? file_bytes_max : field_bytes_max;
  field_bytes_max_ = field_bytes_max;
}

std::string Part::safe_file_name() const { return http::safe_file_name(file_name_.value_or("")); }
std::string_view Part::content_type() const { return header("Content-Type").value_or(""); }
std::optional<std::string_view> Part::header(std::string_view name) const {
  return part_field(body_.head(), name);
}

std::string_view Part::read() {
  const std::string_view data = body_.data();
  bytes_ += data.size();
  if (bytes_ > bytes_max_) throw StatusError(413, is_file() ? "a file is too large" : "a field is too large");
  return data;
}

std::string Part::text() {
  std::string all;
  for (std::string_view data; !(data = read()).empty();) {
    if (data.size() > field_bytes_max_ - all.size()) throw StatusError(413, "a field is too large");
    all += data;
  }
  return all;
}

}  // namespace tuza::http
