#include <tuza/http/tests/request_cases.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

std::string unescape(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    switch (text.at(++i)) {
      case 'r': out += '\r'; break;
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case '\\': out += '\\'; break;
      case 'x':
        out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
        break;
      default: throw std::runtime_error("unknown escape in: " + text);
    }
  }
  return out;
}

void add_repeated(RequestCase& c, const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string piece = unescape(line.substr(space + 1));
  for (int n = std::stoi(line.substr(1, space)); n > 0; --n) c.bytes += piece;
}

void set_verdict(RequestCase& c, RequestCase::Expect expect, std::istringstream& rest) {
  c.expect = expect;
  if (int n = 0; rest >> n) c.accepted = n;
}

void apply_line(RequestCase& c, const std::string& line) {
  if (line.starts_with("> ")) {
    c.bytes += unescape(line.substr(2));
    return;
  }
  if (line.starts_with('*')) return add_repeated(c, line);
  std::istringstream in(line);
  std::string word;
  in >> word;
  const std::string rest = line.size() > word.size() ? line.substr(word.size() + 1) : "";
  int number = 0;
  if (word == "rfc")
    c.rfc = rest;
  else if (word == "accept")
    set_verdict(c, RequestCase::Expect::kAccept, in);
  else if (word == "reject")
    set_verdict(c, RequestCase::Expect::kReject, in);
  else if (word == "either")
    set_verdict(c, RequestCase::Expect::kEither, in);
  else if (word == "outcome")
    c.outcome = rest;
  else if (word == "status")
    c.also_good.push_back(std::stoi(rest));
  else if (word == "close")
    c.must_close = true;
  else if (word == "after")
    c.good_first = std::stoi(rest);
  else if (word == "open")
    c.may_stay_open = true;
  else if (word == "head")
    c.to_head = true;
  else if (word == "echo")
    c.echo = unescape(rest);
  else if (word == "without-header")
    c.without_header = rest;
  else if (word == "without-body")
    c.without_body = rest;
  else if (word == "split")
    while (in >> number) c.splits.push_back(static_cast<std::size_t>(number));
  else
    throw std::runtime_error("requests.txt: cannot read: " + line);
}

}  // namespace

const char* request_cases_file() { return TUZA_REQUEST_CASES; }

std::vector<RequestCase> load_request_cases() {
  std::ifstream in(request_cases_file());
  if (!in) throw std::runtime_error("cannot open " TUZA_REQUEST_CASES);
  std::vector<RequestCase> cases;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("== ")) {
      cases.emplace_back().name = line.substr(3);
    } else {
      apply_line(cases.back(), line);
    }
  }
  return cases;
}

}  // namespace tuza::http::testing
