#include <tuza/framework/config/units.h>

#include <array>
#include <charconv>
#include <limits>
#include <span>

namespace tuza::config {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array<Unit, 5> kDurations{
    {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
constexpr std::array<Unit, 4> kSizes{
    {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", std::int64_t{1} << 30}}};

std::optional<std::int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (name != unit.name) continue;
    if (number > std::numeric_limits<std::int64_t>::max() / unit.factor) return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

std::string text_with_unit(std::int64_t value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) best = &unit;
  }
  return std::to_string(value / best->factor) + std::string(best->name);
}

}  // namespace

std::optional<std::int64_t> parse_duration_ms(std::string_view text) {
  return parse_with_unit(text, kDurations);
}
std::optional<std::int64_t> parse_size(std::string_view text) { return parse_with_unit(text, kSizes); }

std::string duration_text(std::int64_t ms) { return ms == 0 ? "0s" : text_with_unit(ms, kDurations); }
std::string size_text(std::int64_t bytes) { return text_with_unit(bytes, kSizes); }

}  // namespace tuza::config
