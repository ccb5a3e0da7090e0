#include <tuza/http/serve/body_filter.h>

#include <tuza/http/serve/exchange.h>

namespace tuza::http {

BodyFilter::BodyFilter(Exchange& exchange) : exchange_(exchange), installed_(exchange.filter() == nullptr) {
  if (installed_) exchange_.set_filter(this);
}
BodyFilter::~BodyFilter() {
  if (installed_) exchange_.set_filter(nullptr);
}

Result<void> BodyFilter::pass_on(std::string_view data, const Context* ctx) {
  if (data.empty()) return {};
  passed_on_ += data.size();
  return exchange_.send_filtered(data, ctx);
}
void BodyFilter::end() { exchange_.end_filtered(passed_on_); }

BodySource::BodySource(Exchange& exchange) : exchange_(exchange), below_(exchange.exchange_source(this)) {}
BodySource::~BodySource() { exchange_.exchange_source(below_); }

Result<std::size_t> BodySource::read_below(std::span<std::byte> into, const Context* ctx) {
  return below_ != nullptr ? below_->read(into, ctx) : exchange_.read_body(into, ctx);
}

Result<std::size_t> Exchange::take_from_source(std::span<std::byte> into, const Context* ctx) {
  return source_->read(into, ctx);
}

bool Exchange::reopen_response() {
  if (response_.started) return false;
  response_.begun = false;
  return true;
}

void Exchange::replace_held_body(std::string_view body) {
  buffers_->body = body;
  response_.written = body.size();
  if (response_.declared_length) response_.declared_length = body.size();
}

void Exchange::forget_length() {
  response_.declared_length.reset();
  response_.finished = true;
}

bool Exchange::wrote_all_it_declared() const {
  return !response_.declared_length || response_.written == *response_.declared_length;
}

void Exchange::end_filtered(std::uint64_t bytes) {
  response_.finished = false;  // the carrier ends the body
  // The handler's own promise still counts: the carrier will see that the body is shorter, and leave its end out.
  if (!wrote_all_it_declared()) {
    response_.close = true;
    return;
  }
  response_.declared_length.reset();
  response_.written = bytes;
}

}  // namespace tuza::http
