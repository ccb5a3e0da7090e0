// ResponseWriter::send_file() and send_content(): a handler answers with a file that it has chosen, or with bytes, as
// FileServer does.
#include <tuza/http/response_writer.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <tuza/http/files/content_tag.h>
#include <tuza/http/files/content_type.h>
#include <tuza/http/files/file_errors.h>
#include <tuza/http/files/file_store.h>
#include <tuza/http/files/open_beneath.h>
#include <tuza/http/files/send_file.h>
#include <tuza/http/request.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/files/file_calls.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

using tuza::detail::blocking_syscall;

// RFC 6266: a name that every browser understands, and the true one (RFC 8187).
std::string disposition_of(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789ABCDEF", kPlain = "!#$&+-.^_`|~";
  std::string simple, encoded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alnum = (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
    simple += byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\' || c == '/' || c == '%' ? '_' : c;
    if (alnum || kPlain.contains(c)) {
      encoded += c;
    } else {
      encoded.append("%").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  std::string field = "attachment; filename=\"" + simple + "\"";
  return simple == name ? field : field + "; filename*=UTF-8''" + encoded;
}

std::string type_of(const ResponseWriter& response, std::string_view type, std::string_view name) {
  return std::string(!type.empty() ? type : response.header("Content-Type").value_or(content_type_of(name)));
}

}  // namespace

void ResponseWriter::send_open_file(int fd, std::string_view path, const SendFileOptions& options) {
  struct stat info{};
  if (const long error = blocking_syscall(sys::fstat, fd, &info); error < 0) {
    return refuse_file(*this, error, path);
  }
  if (!S_ISREG(info.st_mode)) return refuse_file(*this, -ENXIO, path);
  const std::string type = type_of(*this, options.content_type, path);
  const FileRules rules{.cache_control = std::string(options.cache_control)};
  const std::optional<std::string> small = small_content(fd, info);
  std::string etag = small ? tag_of_content(*small) : tag_of_file(fd, info, std::chrono::system_clock::now());
  const Representation representation = representation_of(std::move(etag), info, type, rules);
  const FileContent content = small ? FileContent{.bytes = *small} : FileContent{.fd = fd};
  send_representation(representation, content, options.download_name);
}

void ResponseWriter::send_representation(const Representation& representation, const FileContent& content,
                                         std::string_view download_name) {
  if (!download_name.empty()) set_header("Content-Disposition", disposition_of(download_name));
  const Request request(exchange_);
  const bool may_be_conditional = request.method() == Method::kGet || request.method() == Method::kHead;
  if (may_be_conditional && status_code() == 200) {
    http::send_file(request, *this, representation, content);
  } else {
    send_whole_file(*this, representation, content);
  }
}

void ResponseWriter::send_file(const File& file, const SendFileOptions& options) {
  const File::Number number(file);
  if (number.fd() < 0) return refuse_file(*this, -EBADF, file.path());
  send_open_file(number.fd(), file.path(), options);
}

void ResponseWriter::send_file(std::string_view path, const SendFileOptions& options) {
  const std::string name(path);
  if (name.contains('\0')) return refuse_file(*this, -ENOENT, "a name with a zero byte");
  struct stat look{};
  // FIFOs and devices are not even opened.
  if (blocking_syscall(sys::fstatat, AT_FDCWD, name.c_str(), &look, 0) == 0 && !S_ISREG(look.st_mode)) {
    return refuse_file(*this, -ENXIO, path);
  }
  const long fd =
      blocking_syscall(sys::openat, AT_FDCWD, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
  if (fd < 0) return refuse_file(*this, fd, path);
  const OpenFile open(static_cast<int>(fd));
  send_open_file(open.fd(), path, options);
}

void ResponseWriter::send_content(std::string_view bytes, const SendContentOptions& options) {
  const std::string type = type_of(*this, options.content_type, options.name);
  // RFC 9110 8.8.2.1: not later than the response itself.
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto date = options.last_modified;
  send_representation({.size = bytes.size(),
                       .validators = {.etag = header("ETag") ? std::string() : tag_of_content(bytes),
                                      .last_modified = std::min(date.value_or(now), now),
                                      .has_date = date.has_value()},
                       .content_type = type,
                       .cache_control = options.cache_control},
                      {.bytes = bytes}, options.download_name);
}

}  // namespace tuza::http
