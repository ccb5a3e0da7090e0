#include <tuza/http/negotiate.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>

#include <algorithm>
#include <cstddef>

namespace tuza::http {
namespace {

// In thousandths; -1 if malformed. More than three digits are tolerated, since clients send them: "0.3333".
int parse_weight(std::string_view text) {
  if (text.empty() || (text[0] != '0' && text[0] != '1')) return -1;
  int value = (text[0] - '0') * 1000;
  if (text.size() == 1) return value;
  if (text[1] != '.') return -1;
  int unit = 100;
  bool above_zero = text[0] == '1';
  for (const char c : text.substr(2)) {
    if (c < '0' || c > '9' || (text[0] == '1' && c != '0')) return -1;
    above_zero = above_zero || c != '0';
    value += (c - '0') * unit;
    unit /= 10;
  }
  return above_zero ? std::max(value, 1) : 0;  // "0.0001" is little, but acceptable
}

struct Parameter {
  std::string_view name, value;
};
std::optional<Parameter> take_parameter(std::string_view& list) {
  while (!list.empty()) {
    std::string_view item = take_item(list, ';');
    if (item.empty()) continue;
    const std::string_view name = take_item(item, '=');
    return Parameter{name, unquoted(item)};
  }
  return std::nullopt;
}

// How well an item fits an offer; the best fit decides the weight.
struct Fit {
  int specificity = -1;  // -1: not at all
  int weight = 0;
};

// Returns the fit of the most specific item. `specificity(item)` is -1 for an item that does not concern the offer.
template <class Specificity>
Fit best_fit(FieldValues fields, Specificity specificity) {
  Fit best;
  for (std::string_view field : fields) {
    while (const std::optional<WeightedItem> item = next_weighted_item(field)) {
      if (item->weight < 0) continue;
      const int fits = specificity(*item);
      if (fits > best.specificity) best = {fits, item->weight};
    }
  }
  return best;
}

// Of equal weights, an offer that the client names goes before one that only a wildcard accepts.
template <class FitOf>
std::optional<std::string_view> heaviest(Offers offered, FitOf fit_of) {
  constexpr int kNamed = 2;
  std::optional<std::string_view> chosen;
  Fit best{.specificity = -1, .weight = 1};
  for (const std::string_view offer : offered) {
    Fit fit = fit_of(offer);
    fit.specificity = std::min(fit.specificity, kNamed);
    const bool better =
        fit.weight > best.weight || (fit.weight == best.weight && fit.specificity > best.specificity);
    if (fit.specificity < 0 || !better) continue;
    chosen = offer;
    best = fit;
  }
  return chosen;
}

bool says_nothing(FieldValues fields) {
  return std::ranges::all_of(fields, [](std::string_view field) { return !next_weighted_item(field); });
}

std::optional<std::string_view> first_of(Offers offered) {
  return offered.empty() ? std::nullopt : std::optional(offered.front());
}

// The number of `wanted` parameters, or -1 if `offered` lacks one of them.
int count_parameters(std::string_view wanted, std::string_view offered) {
  int count = 0;
  while (const std::optional<Parameter> want = take_parameter(wanted)) {
    bool found = false;
    std::string_view left = offered;
    while (const std::optional<Parameter> have = take_parameter(left)) {
      found = found || (equals_ignoring_case(have->name, want->name) &&
                        equals_ignoring_case(have->value, want->value));
    }
    if (!found) return -1;
    ++count;
  }
  return count;
}

int media_range_specificity(const WeightedItem& range, std::string_view offer) {
  const std::string_view type = take_item(offer, ';');  // `offer` keeps the parameters
  const std::size_t slash = range.value.find('/');
  if (slash == std::string_view::npos)
    return range.value == "*" ? 0 : -1;  // "*" is what old Java clients send
  if (range.value == "*/*") return 0;
  if (range.value.substr(slash) == "/*") {
    return equals_ignoring_case(type.substr(0, slash + 1), range.value.substr(0, slash + 1)) ? 1 : -1;
  }
  if (!equals_ignoring_case(type, range.value)) return -1;
  const int parameters = count_parameters(range.parameters, offer);
  return parameters < 0 ? -1 : 2 + parameters;
}

// True if `tag` is `prefix`, or continues it with a subtag.
bool is_language_within(std::string_view tag, std::string_view prefix) {
  return tag.size() >= prefix.size() && equals_ignoring_case(tag.substr(0, prefix.size()), prefix) &&
         (tag.size() == prefix.size() || tag[prefix.size()] == '-');
}

int language_specificity(const WeightedItem& range, std::string_view offer) {
  constexpr int kFiltered = 1000;  // above what lookup gives, which is the length of a tag at most
  if (range.value == "*") return 0;
  if (is_language_within(offer, range.value)) {
    return kFiltered + static_cast<int>(std::min<std::size_t>(range.value.size(), kFiltered));
  }
  if (!is_language_within(range.value, offer)) return -1;
  return 1;
}

std::string_view without_x(std::string_view coding) {
  if (equals_ignoring_case(coding, "x-gzip") || equals_ignoring_case(coding, "x-compress"))
    coding.remove_prefix(2);
  return coding;
}

Fit encoding_fit(FieldValues fields, std::string_view coding) {
  return best_fit(fields, [coding](const WeightedItem& item) {
    if (equals_ignoring_case(without_x(item.value), without_x(coding))) return 1;
    return item.value == "*" ? 0 : -1;
  });
}

}  // namespace

std::optional<WeightedItem> next_weighted_item(std::string_view& list) {
  while (!list.empty()) {
    std::string_view text = take_item(list, ',');
    if (text.empty()) continue;
    WeightedItem item;
    item.value = take_item(text, ';');
    const char* const begin = text.data();
    const char* end = begin;  // of the parameters
    while (!text.empty()) {
      const std::string_view part = take_item(text, ';');
      if (part.size() >= 2 && lower(part[0]) == 'q' && trim(part.substr(1)).starts_with('=')) {
        item.weight = parse_weight(trim(trim(part.substr(1)).substr(1)));
        break;  // what follows is of older HTTP, and has no meaning
      }
      end = part.data() + part.size();
    }
    item.parameters = trim({begin, static_cast<std::size_t>(end - begin)});
    return item;
  }
  return std::nullopt;
}

std::optional<std::string_view> choose_media_type(FieldValues fields, Offers offered) {
  if (says_nothing(fields)) return first_of(offered);
  return heaviest(offered, [fields](std::string_view offer) {
    return best_fit(fields,
                    [offer](const WeightedItem& item) { return media_range_specificity(item, offer); });
  });
}

std::optional<std::string_view> choose_language(FieldValues fields, Offers offered) {
  if (says_nothing(fields)) return first_of(offered);
  return heaviest(offered, [fields](std::string_view offer) {
    // Of several ranges that only lookup shortens to the offer, the heaviest counts: they say the same.
    Fit lookup{.specificity = 1};
    const Fit fit = best_fit(fields, [&](const WeightedItem& item) {
      const int specificity = language_specificity(item, offer);
      if (specificity == 1) lookup.weight = std::max(lookup.weight, item.weight);
      return specificity;
    });
    return fit.specificity == 1 ? lookup : fit;
  });
}

std::optional<std::string_view> choose_encoding(FieldValues fields, Offers offered) {
  constexpr std::string_view kIdentity = "identity";
  if (says_nothing(fields)) return kIdentity;
  const std::optional<std::string_view> best =
      heaviest(offered, [fields](std::string_view offer) { return encoding_fit(fields, offer); });
  const Fit identity = encoding_fit(fields, kIdentity);
  if (best) {
    const bool preferred = identity.specificity == 1 && identity.weight > encoding_fit(fields, *best).weight;
    return preferred ? kIdentity : *best;
  }
  // Acceptable unless it is excluded.
  return identity.specificity >= 0 && identity.weight == 0 ? std::nullopt : std::optional(kIdentity);
}

}  // namespace tuza::http
