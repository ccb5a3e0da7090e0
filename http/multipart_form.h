// Public header, part of <tuza/http.h>.
//
// A form with files, as a client sends it: multipart/form-data (RFC 7578).
//
//     tuza::http::MultipartForm form;
//     form.add("title", "Beach");
//     TUZA_TRY(form.add_file("photo", "/home/ann/beach.jpg"));         // read while it is sent
//     tuza::http::ClientRequest request(Method::kPost, "https://photos.example/");
//     auto res = client.send(ctx, request.set_multipart(std::move(form)));
//
// The body has a length, and can be sent again. A server takes it apart with http::Multipart (http/multipart.h).
//
// Thread-compatible.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/http/client.h>
#include <tuza/sched/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

struct FormFile {
  std::string file_name{};     // that the server is told; empty: that of the path
  std::string content_type{};  // empty: by the ending of the name
};

class MultipartForm {
 public:
  MultipartForm();

  // A field. Names may be any text, and come more than once.
  MultipartForm& add(std::string_view name, std::string_view value);
  // A text as a file. Throws std::invalid_argument for a content type with control characters.
  MultipartForm& add_file_text(std::string_view name, std::string text, const FormFile& file);
  // A file, which keeps its size until it has been sent: what is added to it is not sent, and one that has become shorter is
  // Errc::kEndOfStream of the call. Errors: those of File::open(); std::errc::invalid_argument if it is no regular file. Throws as
  // add_file_text(). Parks.
  [[nodiscard]] Result<void> add_file(std::string_view name, const std::string& path,
                                      const FormFile& file = {});

 private:
  friend class ClientRequest;
  struct Piece {
    std::string text{};
    std::string path{};  // empty: the text
    std::uint64_t bytes = 0;
  };
  using Pieces = std::vector<Piece>;
  class Reader;
  void add_head(std::string_view name, const FormFile* file);
  void add_text(std::string text);

  std::string boundary_;
  Pieces pieces_;
  std::uint64_t bytes_ = 0;  // of all pieces
};

}  // namespace tuza::http
