#include <tuza/http/file_server.h>

#include <tuza/http/files/content_tag.h>
#include <tuza/http/files/content_type.h>
#include <tuza/http/files/file_errors.h>
#include <tuza/http/files/file_path.h>
#include <tuza/http/files/file_store.h>
#include <tuza/http/files/listing.h>
#include <tuza/http/files/open_beneath.h>
#include <tuza/http/files/send_file.h>
#include <tuza/http/files/served_folder.h>
#include <tuza/http/files/siblings.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/wire/chars.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tuza::http {
namespace {

void check(const FileServerOptions& options) {
  const std::string& prefix = options.prefix;
  if (prefix.empty() || prefix.front() != '/' || prefix.back() != '/') {
    throw std::invalid_argument("FileServer: the prefix \"" + prefix +
                                "\" does not begin and end with \"/\"");
  }
  if (has_control_char(options.cache_control)) {
    throw std::invalid_argument("FileServer: a control character in the Cache-Control header");
  }
  if (options.cache_age_max < std::chrono::milliseconds(0) ||
      options.cache_age_max > std::chrono::seconds(1)) {
    throw std::invalid_argument("FileServer: cache_age_max is 0 to 1 s");
  }
  check_codings(options.precompressed);
}

// Redirects "/dir?x" to "/dir/?x". The path begins with a single slash; with two, it would name a host.
void redirect_to_folder(const Request& request, ResponseWriter& response) {
  std::string location(request.mount_path());
  location.append(request.path()).append("/");
  if (!request.query().empty()) location.append("?").append(request.query());
  response.redirect(location, 301);
}

void send(Request& request, ResponseWriter& response, const FoundFile& found, std::string_view type,
          std::string_view coding, const FileRules& rules) {
  if (found.kind == FoundFile::Kind::kOpen) {
    const int fd = found.open.fd();
    const std::optional<std::string> small = small_content(fd, found.info);
    std::string etag =
        small ? tag_of_content(*small) : tag_of_file(fd, found.info, std::chrono::system_clock::now());
    Representation representation = representation_of(std::move(etag), found.info, type, rules);
    representation.content_encoding = coding;
    return send_file(request, response, representation,
                     small ? FileContent{.bytes = *small} : FileContent{.fd = fd});
  }
  const CachedFile& file = *found.cached;
  // The usual case: its lines are ready, unless middleware has set fields.
  if (!asks_for_more_than_the_file(request) && request.exchange().set_first_headers(file.fields)) {
    if (!coding.empty()) response.set_header("Content-Encoding", coding);
    return response.send(type, file.content);
  }
  Representation representation = file.representation;
  representation.content_type = type;
  representation.content_encoding = coding;
  send_file(request, response, representation, {.bytes = file.content});
}

}  // namespace

struct FileServer::State {
  State(std::string_view path, FileServerOptions from)
      : options(std::move(from)),
        types(options.types, options.types_file),
        folder(path,
               {.bytes_max = options.cache_bytes_max,
                .entries_max = options.cache_entries_max,
                .file_bytes_max = options.cache_file_bytes_max,
                .age_max = options.cache_age_max},
               {.cache_control = options.cache_control, .varies = !options.precompressed.empty()},
               options.cache_age_max / 2) {}

  // The files that answer this request, and what they have under `path`.
  std::shared_ptr<FileStore> find(const std::string& path, FoundFile& found) {
    std::shared_ptr<FileStore> files = folder.files();
    found = files->find(path);
    if (!found.asked || folder.still_names(*files)) return files;
    found = FoundFile();  // its pin is of the old store
    files = folder.files();
    found = files->find(path);
    return files;
  }

  const FileServerOptions options;
  const ContentTypes types;
  ServedFolder folder;
};

FileServer::FileServer(std::string_view folder, FileServerOptions options) {
  check(options);
  state_ = std::make_unique<State>(folder, std::move(options));
}
FileServer::FileServer(FileServer&&) noexcept = default;
FileServer& FileServer::operator=(FileServer&&) noexcept = default;
FileServer::~FileServer() = default;

void FileServer::operator()(Request& request, ResponseWriter& response) const {
  const FileServerOptions& options = state_->options;
  if (request.method() != Method::kGet && request.method() != Method::kHead) {
    response.set_header("Allow", "GET, HEAD");
    return response.error(405);
  }
  const std::optional<std::string_view> encoded = behind_prefix(request.path(), options.prefix);
  if (!encoded) return response.error(404);
  std::optional<std::string> path = file_path(*encoded, options.names_that_begin_with_dot);
  if (!path) return response.error(404);
  const bool folder = path->empty() || path->back() == '/';
  const std::size_t folder_size = path->size();
  if (folder) *path += options.index;
  // Declared before what it has found, and so destroyed after it.
  std::shared_ptr<FileStore> files;
  FoundFile found;
  if (folder && options.index.empty()) {
    found.error = -ENOENT;
    files = state_->folder.files();
    if (options.listing && !state_->folder.still_names(*files)) files = state_->folder.files();
  } else {
    files = state_->find(*path, found);
  }
  if (folder && found.error == -ENOENT && options.listing) {
    path->resize(folder_size);
    return send_listing(request, response, files->folder(), *path, options.names_that_begin_with_dot);
  }
  if (found.kind == FoundFile::Kind::kFolder && !folder) return redirect_to_folder(request, response);
  if (found.kind == FoundFile::Kind::kFolder) return response.error(404);
  if (!found.is_file()) return refuse_file(response, found.error, *path);
  // A type that has been set stays, and so does a coding, which is that of the file itself. Copied, because the fields move.
  const std::optional<std::string_view> given = response.header("Content-Type");
  const std::string kept(given.value_or(""));
  const std::string_view type = given ? kept : state_->types.of(*path);
  if (!options.precompressed.empty() && !response.header("Content-Encoding")) {
    const std::optional<Sibling> sibling = find_sibling(request, *files, *path, found, options.precompressed);
    if (sibling) return send(request, response, sibling->file, type, sibling->coding, files->rules());
  }
  send(request, response, found, type, {}, files->rules());
}

}  // namespace tuza::http
