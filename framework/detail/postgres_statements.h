// The statements of one connection that the server has prepared, or soon will have, by their texts.
//
// A statement is prepared when it comes for the second time: one that comes once costs the server nothing. The texts used
// latest are kept (LRU), so a stream of statements that never come again takes the places of its own kind at last, and
// those in steady use stay.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstddef>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tuza::postgres::detail {

class PreparedStatements {
 public:
  struct Statement {
    std::string sql;
    std::string name;  // empty: not prepared yet
  };
  // Longer ones are rarely the same twice: their values are within.
  static constexpr std::size_t kLongest = std::size_t{16} << 10;

  explicit PreparedStatements(std::size_t max) : max_(max) {}

  // The statement, if it has come before; otherwise null, and the next time it has. Valid until another one comes.
  [[nodiscard]] Statement* seen_before(const std::string& sql) {
    if (max_ == 0 || sql.size() > kLongest) return nullptr;
    if (const auto found = by_sql_.find(sql); found != by_sql_.end()) {
      latest_first_.splice(latest_first_.begin(), latest_first_, found->second);
      return &latest_first_.front();
    }
    if (latest_first_.size() == max_) forget(latest_first_.back());
    latest_first_.push_front({sql, {}});
    by_sql_.emplace(latest_first_.front().sql, latest_first_.begin());
    return nullptr;
  }
  // For a statement that is to be prepared: no other of the connection has it.
  [[nodiscard]] std::string new_name() { return "tuza_" + std::to_string(++names_); }

  // The server does not have it, or should not: it starts as one that has never come.
  void forget(Statement& statement) {
    if (!statement.name.empty()) close(std::move(statement.name));
    const auto found = by_sql_.find(statement.sql);
    const auto place = found->second;
    by_sql_.erase(found);
    latest_first_.erase(place);
  }
  // The server still has it, and should not.
  void close(std::string name) { to_close_.push_back(std::move(name)); }
  // The server has closed all, as DISCARD ALL and DEALLOCATE ALL make it do.
  void forget_all() {
    by_sql_.clear();
    latest_first_.clear();
    to_close_.clear();
  }
  // Nothing is prepared from now on.
  void stop() {
    forget_all();
    max_ = 0;
  }
  // The names of forgotten statements that the server still has; the caller sees to it that they are closed.
  [[nodiscard]] std::vector<std::string> take_to_close() { return std::exchange(to_close_, {}); }

 private:
  std::size_t max_;
  std::size_t names_ = 0;
  std::list<Statement> latest_first_;
  // The keys lie in the list, whose elements keep their addresses.
  std::unordered_map<std::string_view, std::list<Statement>::iterator> by_sql_;
  std::vector<std::string> to_close_;
};

}  // namespace tuza::postgres::detail
