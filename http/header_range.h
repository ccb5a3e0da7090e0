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
#include <optional>
#include <string_view>

namespace tuza::http {

struct Head;

struct HeaderField {
  std::string_view name, value;
};

// The fields of a request that a server, or of a response that a client has received, in their order.
class ReceivedHeaders {
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
    friend class ReceivedHeaders;
    iterator(const Head* head, const char* base, std::size_t index)
        : head_(head), base_(base), index_(index) {}
    const Head* head_ = nullptr;
    const char* base_ = nullptr;
    std::size_t index_ = 0;
  };

  // `base`: where the bytes of the head begin.
  ReceivedHeaders(const Head& head, const char* base) : head_(&head), base_(base) {}
  [[nodiscard]] iterator begin() const { return {head_, base_, 0}; }
  [[nodiscard]] iterator end() const { return {head_, base_, size()}; }
  [[nodiscard]] std::size_t size() const;
  // The first one of that name, ignoring case.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;

 private:
  const Head* head_;
  const char* base_;
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
  // The first one of that name, ignoring case.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;

 private:
  std::string_view lines_;
};

static_assert(std::forward_iterator<ReceivedHeaders::iterator> &&
              std::forward_iterator<HeaderLines::iterator>);

}  // namespace tuza::http
