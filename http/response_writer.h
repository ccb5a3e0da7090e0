// Public header, part of <tuza/http.h>.
//
// A response, as its handler writes it.
//
// A response is sent either whole, with a length known to the client:
//
//     res.text("Hello!\n");    res.json(201, R"({"ok":true})");    res.send("image/png", bytes);
//
// or piece by piece. Written data is held back at first. A body that stays small gets a Content-Length; a
// larger body is streamed in chunks (or unchunked, if the handler has set Content-Length):
//
//     for (const Row& row : rows) { if (!res.write(row.csv())) return; }       // the client is gone
//
// A handler that writes nothing answers 200 with an empty body. The writer is valid until the handler
// returns. Thread-unsafe.
#pragma once

#include <tuza/http/cookie.h>
#include <tuza/http/header_range.h>
#include <tuza/http/hijacked_stream.h>
#include <tuza/http/json_codec.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuza {
class File;
}

namespace tuza::http {

class Exchange;
struct FileContent;
struct Representation;

struct SendFileOptions {
  std::string_view content_type = {};   // empty: the one that has been set, or by the extension of the file
  std::string_view cache_control = {};  // empty: the field that has been set, or none
  // The browser saves the file under this name instead of showing it (Content-Disposition: attachment).
  std::string_view download_name = {};
};

struct SendContentOptions {
  std::string_view content_type = {};   // empty: the one that has been set, or by the extension of `name`
  std::string_view name = {};           // "app.js"
  std::string_view cache_control = {};  // as in SendFileOptions
  std::string_view download_name = {};  // the same
  // For Last-Modified, and the conditions about it.
  std::optional<std::chrono::sys_seconds> last_modified = {};
};

class ResponseWriter {
 public:
  explicit ResponseWriter(Exchange& exchange) : exchange_(exchange) {}
  ResponseWriter(const ResponseWriter&) = delete;
  ResponseWriter& operator=(const ResponseWriter&) = delete;

  // -- Before the response has begun: once it has, these throw std::logic_error.

  // 200 to 599; 200 if not set.
  void status(int code);
  // Sets a header field, instead of all fields of that name; to Vary, it adds. Throws std::invalid_argument if the name is not a token,
  // the value contains a line end or another control character, or the server sets the field itself (Transfer-Encoding,
  // Connection; see close()). Content-Length must be the true length of the body.
  void set_header(std::string_view name, std::string_view value);
  // The same, beside fields of that name: Set-Cookie, Vary.
  void add_header(std::string_view name, std::string_view value);
  // Removes all fields of that name. `Date` and `Server` are then sent as the server does.
  void remove_header(std::string_view name);
  // Adds a Set-Cookie field (http/cookie.h). Throws std::invalid_argument for a cookie that browsers would refuse.
  void set_cookie(const Cookie& cookie);
  // Removes a cookie from the browser. `like`: name, path, domain and partitioned must be those that it was set with.
  void delete_cookie(Cookie like);
  void delete_cookie(std::string_view name) { delete_cookie(Cookie{.name = std::string(name)}); }
  // The connection is closed after this response.
  void close();

  // A field behind the body, such as a checksum of it; may be added until the response is complete. Clients of HTTP/1.0
  // do not get it, nor does HEAD. Throws as add_header(), and for fields that must come before the body (RFC 9110 6.5.1):
  // Content-Length, Content-Type and others.
  void add_trailer(std::string_view name, std::string_view value);

  // A response in front of the response (103, RFC 8297), at once: the browser fetches what the page will need while the handler
  // still makes the page. `link` is the value of a Link field, "</app.css>; rel=preload; as=style"; the response gets the field,
  // too, and is all that a client of HTTP/1.0 gets. Old clients take a 103 for the response: send it to those that say what they
  // are, browsers by `Sec-Fetch-Mode: navigate`. An error: the client is gone or too slow. Throws as add_header(). Parks.
  [[nodiscard]] Result<void> early_hints(std::string_view link);

  // -- The body.

  // The whole response; nothing may be written before or after. Throws std::invalid_argument as set_header()
  // does. Does not park, except to send a large response.
  void send(std::string_view content_type, std::string_view body);
  void text(std::string_view body) { send("text/plain; charset=utf-8", body); }
  void json(std::string_view body) { send("application/json", body); }
  void json(detail::BracedList) = delete;  // of a library: write nlohmann::json{...}
  void html(std::string_view body) { send("text/html; charset=utf-8", body); }
  // The same with a status: res.json(201, text).
  void send(int code, std::string_view content_type, std::string_view body) {
    status(code);
    send(content_type, body);
  }
  void text(int code, std::string_view body) { send(code, "text/plain; charset=utf-8", body); }
  void json(int code, std::string_view body) { send(code, "application/json", body); }
  void json(int code, detail::BracedList) = delete;
  void html(int code, std::string_view body) { send(code, "text/html; charset=utf-8", body); }
  // 204: done, and there is nothing to say.
  void no_content() { status(204); }
  // A value as JSON, by JsonCodec<T> (http/json_codec.h).
  template <JsonEncodable T>
  void json(const T& value) {
    std::string text;
    JsonCodec<T>::encode(value, text);
    send("application/json", text);
  }
  template <JsonEncodable T>
  void json(int code, const T& value) {
    status(code);
    json(value);
  }
  template <class T>  // says what is missing
    requires(!JsonEncodable<T> && !std::convertible_to<const T&, std::string_view>)
  void json(const T&) {
    detail::require_json_codec<JsonEncodable<T>>();
  }
  template <class T>
    requires(!JsonEncodable<T> && !std::convertible_to<const T&, std::string_view>)
  void json(int, const T&) {
    detail::require_json_codec<JsonEncodable<T>>();
  }
  // A regular file as the whole response, as FileServer sends it: Content-Type, ETag, Last-Modified; for GET and HEAD, unless
  // a status has been set, conditions and ranges; by sendfile(2). Nothing may have been written. 404 if there is no such
  // file, or if it is a folder, a FIFO or a device; 403 if it may not be read. Do not make a path of what a client has sent:
  // FileServer knows how. Parks.
  void send_file(std::string_view path, const SendFileOptions& options = {});
  void send_file(const File& file, const SendFileOptions& options = {});
  // Bytes in memory, such as an asset that is part of the program or a report just made, as send_file() sends a file. The ETag
  // is a hash of them, 1 ms for some 1.5 MB, unless one has been set. Parks.
  void send_content(std::string_view bytes, const SendContentOptions& options = {});
  // Sends the client to `location`, a URI or the path of one: 301, 302, 303, 307 or 308, std::invalid_argument otherwise.
  // Characters that a URI does not have are percent-encoded, control characters and "\\" too. Check a location that a
  // client has chosen: "//host" names another server.
  void redirect(std::string_view location, int code = 302);
  // An error or another status with a short text: "Not Found\n", as the server itself answers 404, 413 or 500. Replaces
  // status and body that were prepared but not sent. Header fields that the handler or middleware has set are kept, WWW-Authenticate for instance,
  // except those that describe the discarded body: Content-Type, -Length, -Encoding, -Language, -Location, -Range, -Disposition,
  // -Digest and -MD5, Repr-Digest, Digest, ETag, Last-Modified, Expires, and Cache-Control (also CDN-Cache-Control and its like)
  // unless it says no-store or no-cache.
  void error(int code);
  void error(int code, std::string_view text);

  // Writes a part of the body. An error means that the client is gone or too slow, or that `ctx` has ended while the
  // client did not read; further writes fail too. Without a context the wait ends with the time of the request, the
  // deadline of Request::context() (Errc::kTimeout); Context::background() waits longer, for write_timeout. May park.
  [[nodiscard]] Result<void> write(std::string_view data);
  [[nodiscard]] Result<void> write(const Context& ctx, std::string_view data);
  // The same for a part of an open file, by sendfile(2); Content-Length must have been set.
  [[nodiscard]] Result<void> write_file(const net::FileSlice& slice);
  [[nodiscard]] Result<void> write_file(const Context& ctx, const net::FileSlice& slice);
  // Sends everything written so far, and the responses of earlier pipelined requests. Parks.
  [[nodiscard]] Result<void> flush();
  [[nodiscard]] Result<void> flush(const Context& ctx);

  // From now on until the handler returns, one goroutine may read the body while another one writes the response: call it, and
  // Request::context() if that is needed, before. All else of request and response belongs to one of them. Within one
  // goroutine, reads and writes may alternate without it. A client that waits for "100 Continue" gets it. A response that
  // begins before the end of the body closes the connection behind it. False: the body cannot be read, or the client has
  // gone. Parks.
  [[nodiscard]] bool enable_full_duplex();

  // Takes over the byte stream of the connection until the handler returns; then the connection ends. The answers to
  // earlier pipelined requests are sent first. Of this response nothing has been sent, fields that were set included: the
  // handler writes the status line, too. `status` is what logs and metrics see. Nothing may be written to this object
  // afterwards. For protocols that begin in HTTP; a shutdown cuts the stream off at its deadline (see
  // Request::until_shutdown()).
  //
  // Fails if the client has gone, if the body of the request has not been read to its end (Errc::kBadMessage), or if
  // there is no connection, as in http::testing::call (Errc::kOther); the handler may then answer as usual. Parks.
  [[nodiscard]] Result<HijackedStream> hijack(int status = 101);

  // True if the status line may have been sent: it is too late for status() and set_header().
  [[nodiscard]] bool head_sent() const;

  // -- What has been set. For middleware, after the handler has returned.

  // The first field of that name that has been set, ignoring case; nullopt if there is none. Valid until the next field
  // is set.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // All fields that have been set: a range of HeaderField.
  [[nodiscard]] HeaderLines headers() const;
  // The status that was sent, or that would be sent if the handler returned now. This includes the status of
  // an unreadable request body (400, 408, 413).
  [[nodiscard]] int status_code() const;
  // Bytes of the body so far, without chunk framing; 0 if no body is allowed (HEAD, 304).
  [[nodiscard]] std::uint64_t bytes_written() const;

 private:
  void send_open_file(int fd, std::string_view path, const SendFileOptions& options);
  void send_representation(const Representation& representation, const FileContent& content,
                           std::string_view download_name);

  Exchange& exchange_;
};

}  // namespace tuza::http
