// Public header, part of <tuza/net.h>.
//
// A connection as a std::iostream, for libraries that read from std::istream or write to std::ostream.
//
//     tuza::net::ConnStream stream(conn);
//     nlohmann::json::parse(stream);
//     stream << "HELO\r\n" << std::flush;
//
// std::flush, a full buffer, and the destructor write; nothing else does. At an error or the end of the stream the
// usual bits are set (badbit, eofbit), and error() says why. One goroutine at a time; the connection must outlive the
// stream. All that reads or writes may park.
#pragma once

#include <tuza/netpoll/conn.h>

#include <array>
#include <cstddef>
#include <istream>
#include <optional>
#include <streambuf>

namespace tuza::net {

class ConnStreamBuf : public std::streambuf {
 public:
  explicit ConnStreamBuf(Conn& conn);
  // Writes what is left. An error is lost: flush before, to see it.
  ~ConnStreamBuf() override;

  // Nothing after a clean end of the stream.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 protected:
  int_type underflow() override;
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  bool keep(const Result<void>& result);

  Conn& conn_;
  std::optional<Error> error_;
  std::array<char, 4096> in_, out_;
};

class ConnStream : public std::iostream {
 public:
  explicit ConnStream(Conn& conn) : std::iostream(nullptr), buffer_(conn) { rdbuf(&buffer_); }
  [[nodiscard]] const std::optional<Error>& error() const { return buffer_.error(); }

 private:
  ConnStreamBuf buffer_;
};

}  // namespace tuza::net
