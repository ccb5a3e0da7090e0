#include <tuza/http/codec/coded_body.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/head.h>
#include <tuza/http/wire/list.h>

namespace tuza::http {
namespace {

constexpr std::uint64_t kFreeBytes = 1 << 20;  // where the ratio begins to count

}  // namespace

ContentEncoding content_encoding(const ReceivedHeaders& headers) {
  ContentEncoding found;
  int count = 0;
  for (const auto& [name, value] : headers) {
    if (!equals_ignoring_case(name, "Content-Encoding")) continue;
    if (!found.coding) found.coding = std::string_view();
    std::string_view list = value;
    while (!list.empty()) {
      const std::string_view coding = take_item(list, ',');
      if (!coding.empty() && count++ == 0) found.coding = coding;
    }
  }
  found.several = count > 1;
  if (count == 1 && equals_ignoring_case(*found.coding, "identity")) found.coding.reset();
  return found;
}

void hide_coding(Head& head, const char* base) {
  const auto describes = [base](const Head::Field& field) {
    const std::string_view name = field.name.in(base);
    return equals_ignoring_case(name, "Content-Encoding") || equals_ignoring_case(name, "Content-Length");
  };
  std::erase_if(head.fields, describes);
}

CodedBody::CodedBody(Coding coding, const Limits& limits, const char* operation)
    : limits_(limits), operation_(operation), decoder_(make_decoder(coding)) {}

void CodedBody::received(std::size_t n) {
  all_received_ = n == 0;
  received_ += n;
  unread_ = {piece_.data(), n};
}

Error CodedBody::error() const {
  return Error::from_text(make_error_code(Errc::kBadMessage),
                          std::string(operation_).append(": ").append(why_));
}

// 0: more has to be received, the end, or a failure.
std::size_t CodedBody::decode(std::span<std::byte> into) {
  if (received_ == 0) {
    ended_ = true;
    return 0;
  }
  const std::span<char> out(reinterpret_cast<char*>(into.data()), into.size());
  const Decoder::Progress progress = decoder_->decode(unread_, out);
  if (progress.state == Decoder::State::kMalformed) {
    why_ = "malformed compressed body";
    return 0;
  }
  if (progress.produced > 0) return account(progress.produced);
  if (!unread_.empty() || !all_received_) return 0;
  ended_ = progress.state == Decoder::State::kEnd;
  if (!ended_) why_ = "truncated compressed body";
  return 0;
}

std::size_t CodedBody::account(std::size_t produced) {
  produced_ += produced;
  const bool bomb = produced_ > kFreeBytes && produced_ / limits_.ratio_max > received_;
  too_large_ = bomb || produced_ > limits_.bytes_max;
  if (!too_large_) return produced;
  why_ = "decompressed body too large";
  return 0;
}

}  // namespace tuza::http
