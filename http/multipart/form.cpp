#include <tuza/http/files/content_type.h>
#include <tuza/http/multipart/boundary.h>
#include <tuza/http/multipart_form.h>
#include <tuza/http/wire/field.h>
#include <tuza/netpoll/file.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

namespace tuza::http {
namespace {

// As browsers write it (WHATWG HTML, "multipart/form-data"): what would end the text or the line, and nothing else.
void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "%22"; break;
      case '\r': out += "%0D"; break;
      case '\n': out += "%0A"; break;
      default: out += c;
    }
  }
  out += '"';
}

std::string_view last_segment(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// Reads one piece after the other. A file is open while it is read.
class MultipartForm::Reader {
 public:
  explicit Reader(std::shared_ptr<const Pieces> pieces) : pieces_(std::move(pieces)) {}

  Result<std::size_t> operator()(std::span<std::byte> into) {
    std::size_t all = 0;
    while (all < into.size() && index_ < pieces_->size()) {
      const Piece& piece = (*pieces_)[index_];
      const std::size_t most =
          static_cast<std::size_t>(std::min<std::uint64_t>(piece.bytes - done_, into.size() - all));
      const std::span<std::byte> room = into.subspan(all, most);
      if (piece.path.empty()) {
        std::ranges::copy(std::as_bytes(std::span(piece.text).subspan(done_, most)), room.begin());
      } else if (const Result<void> filled = fill(piece, room); !filled) {
        return std::unexpected(filled.error());
      }
      all += most;
      done_ += most;
      if (done_ == piece.bytes) next();
    }
    return all;
  }

 private:
  Result<void> fill(const Piece& piece, std::span<std::byte> room) {
    if (!file_) {
      Result<File> opened = File::open(piece.path);
      if (!opened) return std::unexpected(opened.error());
      file_ = *std::move(opened);
    }
    while (!room.empty()) {
      const Result<std::size_t> n = file_->read(room);
      if (!n) return std::unexpected(n.error());
      if (*n == 0)
        return std::unexpected(Error(Errc::kEndOfStream, "send form", piece.path + " has become shorter"));
      room = room.subspan(*n);
    }
    return {};
  }
  void next() {
    file_.reset();
    done_ = 0;
    ++index_;
  }

  std::shared_ptr<const Pieces> pieces_;
  std::size_t index_ = 0;
  std::uint64_t done_ = 0;  // of the piece
  std::optional<File> file_;
};

MultipartForm::MultipartForm() : boundary_(random_boundary()) {}

void MultipartForm::add_text(std::string text) {
  bytes_ += text.size();
  if (!pieces_.empty() && pieces_.back().path.empty()) {
    pieces_.back().text += text;
    pieces_.back().bytes += text.size();
  } else if (!text.empty()) {
    const std::uint64_t bytes = text.size();
    pieces_.push_back({.text = std::move(text), .bytes = bytes});
  }
}

void MultipartForm::add_head(std::string_view name, const FormFile* file) {
  std::string head = "--" + boundary_ + "\r\nContent-Disposition: form-data; name=";
  append_quoted(head, name);
  if (file != nullptr) {
    head += "; filename=";
    append_quoted(head, file->file_name);
    const std::string_view type =
        file->content_type.empty() ? content_type_of(file->file_name) : std::string_view(file->content_type);
    require_one_line("Content-Type", type);
    head.append("\r\nContent-Type: ").append(type);
  }
  add_text(head + "\r\n\r\n");
}

MultipartForm& MultipartForm::add(std::string_view name, std::string_view value) {
  add_head(name, nullptr);
  add_text(std::string(value) + "\r\n");
  return *this;
}

MultipartForm& MultipartForm::add_file_text(std::string_view name, std::string text, const FormFile& file) {
  add_head(name, &file);
  add_text(std::move(text) + "\r\n");
  return *this;
}

Result<void> MultipartForm::add_file(std::string_view name, const std::string& path, const FormFile& file) {
  Result<File> opened = File::open(path);
  if (!opened) return std::unexpected(opened.error());
  const Result<FileInfo> info = opened->stat();
  if (!info) return std::unexpected(info.error());
  if (info->type != FileType::kRegular)
    return std::unexpected(
        Error(std::make_error_code(std::errc::invalid_argument), "send form", path + " is no regular file"));
  FormFile named = file;
  if (named.file_name.empty()) named.file_name = last_segment(path);
  add_head(name, &named);
  if (info->size_bytes > 0) pieces_.push_back({.path = path, .bytes = info->size_bytes});
  bytes_ += info->size_bytes;
  add_text("\r\n");
  return {};
}

ClientRequest& ClientRequest::set_multipart(MultipartForm form) {
  form.add_text("--" + form.boundary_ + "--\r\n");
  set_header("Content-Type", "multipart/form-data; boundary=" + form.boundary_);
  return set_body_opener(
      [pieces =
           std::make_shared<const MultipartForm::Pieces>(std::move(form.pieces_))]() -> Result<BodySource> {
        return [reader = MultipartForm::Reader(pieces)](const Context&, std::span<std::byte> into) mutable {
          return reader(into);
        };
      },
      form.bytes_);
}

}  // namespace tuza::http
