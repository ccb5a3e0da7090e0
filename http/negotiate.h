// Public header, part of <tuza/http.h>.
//
// Content negotiation, RFC 9110 12.5: which of the offered representations suits the client best.
//
//     const auto type = req.accepts({"application/json", "text/html"});
//     if (!type) throw StatusError(406);
//
// Request has the usual calls; these functions work on the values of fields. The highest weight wins; of equal ones, the
// offer that the client names rather than accepts by a wildcard; of these, the one that is offered first. An item with a
// malformed weight is ignored. Nothing is allocated.
//
// Thread-safe.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <optional>
#include <span>
#include <string_view>

namespace tuza::http {

// One item of a list with weights: "text/html;level=1;q=0.5".
struct WeightedItem {
  std::string_view value;       // "text/html"
  std::string_view parameters;  // those before the weight, as sent: "level=1"
  int weight = 1000;            // in thousandths; 0: not acceptable; -1: malformed
};

// Takes the next item off `list`; nullopt at its end. Empty items are skipped. Commas and semicolons in quoted strings
// do not separate.
[[nodiscard]] std::optional<WeightedItem> next_weighted_item(std::string_view& list);

// `fields`: the values of all fields of the name, in order; none: the client has not sent one. `offered`: in the order
// of the server's preference. The result is one of `offered`; nullopt if none is acceptable.
using FieldValues = std::span<const std::string_view>;
using Offers = std::span<const std::string_view>;

// Accept. For each offer the most specific range counts: with parameters, "text/html", "text/*", "*/*". Without a field,
// or with an empty one, all is acceptable.
[[nodiscard]] std::optional<std::string_view> choose_media_type(FieldValues fields, Offers offered);

// Accept-Language. "de" accepts the offers "de" and "de-CH"; "de-CH" accepts "de-CH" and, if nothing more specific
// says otherwise, "de" (RFC 4647 3.4). Without a field, or with an empty one, all is acceptable.
[[nodiscard]] std::optional<std::string_view> choose_language(FieldValues fields, Offers offered);

// Accept-Encoding. `offered` are codings without "identity", which is always at hand: the result is "identity" if the
// client prefers it or accepts none of `offered`, and nullopt if it excludes that too ("identity;q=0", or "*;q=0"
// without "identity"). Without a field, or with an empty one, "identity". "x-gzip" means "gzip".
[[nodiscard]] std::optional<std::string_view> choose_encoding(FieldValues fields, Offers offered);

}  // namespace tuza::http
