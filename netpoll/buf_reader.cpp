#include <tuza/netpoll/buf_reader.h>

#include <algorithm>
#include <cstring>

namespace tuza::net {

bool BufReader::make_room() {
  if (buffer_ == nullptr) buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ < capacity_) return true;
  if (begin_ == 0) return false;
  std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  return true;
}

Result<std::size_t> BufReader::fill() {
  const std::span room(buffer_.get() + end_, capacity_ - end_);
  const Result<std::size_t> n = read_(source_, ctx_, std::as_writable_bytes(room));
  if (n) end_ += *n;
  return n;
}

Result<std::string_view> BufReader::read_until(char delimiter) {
  for (std::size_t searched = 0;;) {
    const std::string_view text = buffered();
    if (const std::size_t at = text.find(delimiter, searched); at != text.npos) {
      begin_ += at + 1;
      return text.substr(0, at);
    }
    searched = text.size();
    if (!make_room()) {
      return std::unexpected(
          Error(Errc::kBadMessage, "read a line", "of more than " + std::to_string(capacity_) + " bytes"));
    }
    const Result<std::size_t> n = fill();
    if (!n) return std::unexpected(n.error());
    if (*n == 0) {
      if (searched == 0) return std::unexpected(Error(Errc::kEndOfStream, "read a line"));
      const std::string_view last = buffered();
      begin_ = end_;
      return last;
    }
  }
}

Result<std::string_view> BufReader::read_line() {
  Result<std::string_view> line = read_until('\n');
  if (line && line->ends_with('\r')) line->remove_suffix(1);
  return line;
}

Result<std::string_view> BufReader::peek(std::size_t n) {
  while (end_ - begin_ < n && make_room()) {
    const Result<std::size_t> got = fill();
    if (!got) return std::unexpected(got.error());
    if (*got == 0) break;
  }
  return buffered().substr(0, n);
}

Result<std::size_t> BufReader::read(std::span<std::byte> into) {
  if (into.empty()) return 0;
  if (begin_ == end_) {
    // What is larger than the buffer need not pass through it.
    if (into.size() >= capacity_) return read_(source_, ctx_, into);
    make_room();
    const Result<std::size_t> n = fill();
    if (!n || *n == 0) return n;
  }
  const std::size_t n = std::min(into.size(), end_ - begin_);
  std::memcpy(into.data(), buffer_.get() + begin_, n);
  begin_ += n;
  return n;
}

Result<void> BufReader::read_full(std::span<std::byte> into) {
  while (!into.empty()) {
    const Result<std::size_t> n = read(into);
    if (!n) return std::unexpected(n.error());
    if (*n == 0) return std::unexpected(Error(Errc::kEndOfStream, "read"));
    into = into.subspan(*n);
  }
  return {};
}

Result<std::string> BufReader::read_string(std::size_t n) {
  std::string text;
  while (text.size() < n) {
    const std::size_t before = text.size();
    text.resize(before + std::min(n - before, capacity_));
    const std::span piece(text.data() + before, text.size() - before);
    if (const Result<void> read = read_full(std::as_writable_bytes(piece)); !read) {
      return std::unexpected(read.error());
    }
  }
  return text;
}

BufReader::Lines::Iterator& BufReader::Lines::Iterator::operator++() {
  if (Result<std::string_view> line = reader_->read_line()) {
    line_ = *line;
    return *this;
  } else if (!line.error().is(Errc::kEndOfStream)) {
    reader_->error_ = line.error();
  }
  reader_ = nullptr;
  return *this;
}

}  // namespace tuza::net
