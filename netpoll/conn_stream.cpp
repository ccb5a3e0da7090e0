#include <tuza/netpoll/conn_stream.h>

#include <string_view>

namespace tuza::net {

ConnStreamBuf::ConnStreamBuf(Conn& conn) : conn_(conn) { setp(out_.data(), out_.data() + out_.size()); }

ConnStreamBuf::~ConnStreamBuf() { sync(); }

bool ConnStreamBuf::keep(const Result<void>& result) {
  if (!result && !error_) error_ = result.error();
  return result.has_value();
}

ConnStreamBuf::int_type ConnStreamBuf::underflow() {
  const Result<std::size_t> n = conn_.read(std::span<char>(in_));
  if (!n) error_ = n.error();
  if (!n || *n == 0) return traits_type::eof();
  setg(in_.data(), in_.data(), in_.data() + *n);
  return traits_type::to_int_type(in_.front());
}

ConnStreamBuf::int_type ConnStreamBuf::overflow(int_type c) {
  if (sync() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

// A long text need not pass through the buffer.
std::streamsize ConnStreamBuf::xsputn(const char* text, std::streamsize size) {
  if (size < static_cast<std::streamsize>(out_.size())) return std::streambuf::xsputn(text, size);
  if (sync() != 0) return 0;
  return keep(conn_.write_all(std::string_view(text, static_cast<std::size_t>(size)))) ? size : 0;
}

int ConnStreamBuf::sync() {
  const std::string_view text(pbase(), static_cast<std::size_t>(pptr() - pbase()));
  setp(out_.data(), out_.data() + out_.size());
  return text.empty() || keep(conn_.write_all(text)) ? 0 : -1;
}

}  // namespace tuza::net
