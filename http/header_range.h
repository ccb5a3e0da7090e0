// Public header, part of <tuza/http.h>.
//
// Header fields as ranges of name and value:
//
//     for (const auto& [name, value] : req.headers()) { ... }
//
// Valid as long as the request or response they belong to; those of a response until its next field is set.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstddef>
#include <iterator>
#include <string_view>

namespace tuza::http {

struct ExchangeBuffers;

struct HeaderField {
  std::string_view name, value;
};

// The fields of a request, in the order received.
class RequestHeaders {
 public:
  class iterator {
   public:
    using value_type = HeaderField;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    [[nodiscard]] HeaderField operator*() const;
    iterator& operator++() {
      ++index_;
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const iterator& other) const { return index_ == other.index_; }

   private:
    friend class RequestHeaders;
    iterator(const ExchangeBuffers* buffers, std::size_t index) : buffers_(buffers), index_(index) {}
    const ExchangeBuffers* buffers_ = nullptr;
    std::size_t index_ = 0;
  };

  explicit RequestHeaders(const ExchangeBuffers& buffers) : buffers_(&buffers) {}
  [[nodiscard]] iterator begin() const { return {buffers_, 0}; }
  [[nodiscard]] iterator end() const { return {buffers_, size()}; }
  [[nodiscard]] std::size_t size() const;

 private:
  const ExchangeBuffers* buffers_;
};

// The fields that have been set on a response, in that order, without those that the server adds (Content-Length, Date,
// Server and others); or trailers.
class HeaderLines {
 public:
  class iterator {
   public:
    using value_type = HeaderField;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    [[nodiscard]] HeaderField operator*() const;
    iterator& operator++();
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const iterator& other) const { return left_.size() == other.left_.size(); }

   private:
    friend class HeaderLines;
    explicit iterator(std::string_view left) : left_(left) {}
    std::string_view left_;
  };

  // `lines`: "Name: value", each with CRLF at its end.
  explicit HeaderLines(std::string_view lines) : lines_(lines) {}
  [[nodiscard]] iterator begin() const { return iterator(lines_); }
  [[nodiscard]] iterator end() const { return iterator(std::string_view()); }

 private:
  std::string_view lines_;
};

static_assert(std::forward_iterator<RequestHeaders::iterator> &&
              std::forward_iterator<HeaderLines::iterator>);

}  // namespace tuza::http
