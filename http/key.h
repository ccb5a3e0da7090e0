// Public header, part of <tuza/http.h>.
//
// A key under which middleware hands a value of type T to the handlers behind it.
//
//     inline constexpr http::Key<User> kUser;        // in a header that both include
//
//     req.set(kUser, User{"ada"});                   // middleware
//     if (const User* user = req.get(kUser)) ...     // handler
//
// A key is its address: two keys of the same type are two keys, and no two libraries can choose the same by accident.
// Define keys at namespace scope or static, and `inline` in a header.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <type_traits>

namespace tuza::http {

template <class T>
class Key {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);
  static_assert(std::is_move_constructible_v<T> && std::is_move_assignable_v<T>);

 public:
  constexpr Key() noexcept {
  }  // NOLINT(modernize-use-equals-default): `constexpr Key<T> k;` needs a constructor
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
};

}  // namespace tuza::http
