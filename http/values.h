// Public header, part of <tuza/http.h>.
//
// The names and values of a query or a form, decoded, in the order in which the client sent them, duplicates included:
//
//     const http::Values query = req.query_values();               // ?tag=a&tag=b&page=2
//     for (const std::string_view tag : query.get_all("tag")) { ... }
//     const int page = query.get<int>("page").value_or(1);         // "page=x": 400
//
// Owns its text: it may outlive the request. Views are valid until the next add(), and as long as the object is neither
// moved nor destroyed. Thread-compatible.
#pragma once

#include <tuza/http/detail/parse_value.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

class Values {
 public:
  static constexpr std::size_t kCountMax = 1'000;

  struct Item {
    std::string_view name, value;
  };

  Values() = default;
  // Values form{{"user", "ann"}, {"page", "2"}};
  Values(std::initializer_list<Item> items) {
    for (const auto& [name, value] : items) add(name, value);
  }
  // Decodes application/x-www-form-urlencoded, "a=1&b=x+y%21", as the URL standard of browsers does: an item without "="
  // has an empty value, an empty item is skipped, a "%" that begins no escape stays. nullopt if there are more than
  // `count_max` items.
  [[nodiscard]] static std::optional<Values> parse(std::string_view encoded,
                                                   std::size_t count_max = kCountMax);

  // The first value of that name; nullopt if there is none. Names are case-sensitive.
  [[nodiscard]] std::optional<std::string_view> get(std::string_view name) const;
  // The same as a number, bool or text. Throws StatusError(400) if it is none.
  template <class T>
  [[nodiscard]] std::optional<T> get(std::string_view name) const {
    const std::optional<std::string_view> text = get(name);
    if (!text) return std::nullopt;
    const std::optional<T> value = detail::parse_value<T>(*text);
    if (!value) detail::malformed_value("value of", name);
    return value;
  }
  [[nodiscard]] std::vector<std::string_view> get_all(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return get(name).has_value(); }

  void add(std::string_view name, std::string_view value);
  // The same in application/x-www-form-urlencoded: for links and redirects.
  [[nodiscard]] std::string encode() const;

  [[nodiscard]] std::size_t size() const { return spans_.size(); }
  [[nodiscard]] bool empty() const { return spans_.empty(); }
  [[nodiscard]] Item operator[](std::size_t index) const;

  class iterator {
   public:
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    [[nodiscard]] Item operator*() const { return (*values_)[index_]; }
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
    friend class Values;
    iterator(const Values* values, std::size_t index) : values_(values), index_(index) {}
    const Values* values_ = nullptr;
    std::size_t index_ = 0;
  };
  [[nodiscard]] iterator begin() const { return {this, 0}; }
  [[nodiscard]] iterator end() const { return {this, size()}; }

 private:
  struct Span {  // name and value follow each other in text_
    std::size_t begin, name_bytes, value_bytes;
  };
  void append_decoded(std::string_view encoded);

  std::string text_;
  std::vector<Span> spans_;
};

}  // namespace tuza::http
