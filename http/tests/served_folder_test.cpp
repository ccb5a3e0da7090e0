// The folder behind a path that is switched, tags that replicas agree on, and types of one's own.
#include <tuza/http/files/served_folder.h>

#include <tuza/http/file_server.h>
#include <tuza/http/files/content_tag.h>
#include <tuza/http/files/content_type.h>
#include <tuza/http/files/file_content.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/file_folder.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>

namespace tuza::http::testing {
namespace {

using namespace std::chrono_literals;

// "release1" and "release2" with files that name them, and "current", a link to the first.
class Releases {
 public:
  Releases() {
    for (const char* name : {"release1", "release2"}) make(name);
    fs::create_directory_symlink("release1", top() / "current");
  }
  [[nodiscard]] fs::path top() const { return folder_.root(); }
  void make(const std::string& name) const {
    fs::create_directory(top() / name);
    Folder::write(top() / name / "version.txt", name);
    Folder::write(top() / name / "version.txt.gz", name + " coded");
  }
  void switch_to(const std::string& name) const {
    fs::create_directory_symlink(name, top() / "next");
    fs::rename(top() / "next", top() / "current");
  }

 private:
  const Folder folder_;
};

std::string body_of(const FileServer& files, const char* path = "/version.txt") {
  const CallResult r = call(files, std::string("GET ") + path);
  return r.status == 200 ? r.body : std::to_string(r.status);
}

TEST(ServedFolderTest, ASwitchedLinkIsFollowedAtOnce) {
  const Releases releases;
  const FileServer files((releases.top() / "current").string());
  EXPECT_EQ(body_of(files), "release1");
  releases.switch_to("release2");
  EXPECT_EQ(body_of(files), "release2");
  EXPECT_EQ(body_of(files, "/nothing"), "404");
  releases.switch_to("release1");
  EXPECT_EQ(body_of(files), "release1");
}

TEST(ServedFolderTest, AFolderThatIsMadeAnewIsServedAtOnce) {
  const Releases releases;
  const FileServer files((releases.top() / "release1").string(), {.index = "", .listing = true});
  EXPECT_EQ(body_of(files), "release1");
  for (int i = 0; i < 3; ++i) {
    fs::remove_all(releases.top() / "release1");
    EXPECT_EQ(body_of(files), "404");
    releases.make("release1");
    EXPECT_EQ(body_of(files), "release1");
    EXPECT_TRUE(body_of(files, "/").contains("version.txt"));
  }
  fs::remove_all(releases.top() / "release1");
  releases.make("release1");
  EXPECT_TRUE(body_of(files, "/").contains("version.txt")) << "the first request after it";
}

// What is cached counts for its time; then the whole folder is another one, with a cache of its own.
TEST(ServedFolderTest, ARequestKeepsTheFolderThatItBeganWith) {
  const Releases releases;
  const FileCache::Limits all{
      .bytes_max = 1 << 20, .entries_max = 9, .file_bytes_max = 99, .age_max = 1h, .settled = 0ns};
  ServedFolder folder((releases.top() / "current").string(), all, {}, 1h);
  const auto text = [](const FoundFile& found) {
    return found.kind == FoundFile::Kind::kCached ? found.cached->content : "none";
  };
  const std::shared_ptr<FileStore> before = folder.files();
  EXPECT_EQ(text(before->find("version.txt")), "release1");
  EXPECT_FALSE(before->find("version.txt").asked);
  EXPECT_TRUE(folder.still_names(*before));
  releases.switch_to("release2");
  EXPECT_EQ(folder.files(), before) << "nobody has looked yet";
  EXPECT_FALSE(folder.still_names(*before));
  EXPECT_EQ(text(folder.files()->find("version.txt")), "release2");
  EXPECT_EQ(text(before->find("version.txt.gz")), "release1 coded")
      << "of the same version as the first file";
  fs::remove(releases.top() / "current");
  const std::shared_ptr<FileStore> last = folder.files();
  EXPECT_TRUE(folder.still_names(*last)) << "the path names nothing";
  Folder::write(releases.top() / "current", "a file");
  EXPECT_TRUE(folder.still_names(*last)) << "nor a folder";

  ServedFolder looks((releases.top() / "release1").string(), all, {}, 0ns);
  EXPECT_EQ(text(looks.files()->find("version.txt")), "release1");
  fs::rename(releases.top() / "release1", releases.top() / "old");
  fs::rename(releases.top() / "release2", releases.top() / "release1");
  EXPECT_EQ(text(looks.files()->find("version.txt")), "release2");
  EXPECT_THROW(ServedFolder("/no/such/folder", all, {}, 1h), std::system_error);
}

// -- Tags.

std::string tag_of(const fs::path& path, std::string_view text, time_t modified) {
  Folder::write(path.string() + ".new", text);
  Folder::set_time(path.string() + ".new", modified);
  fs::rename(path.string() + ".new", path);
  const FileServer files(path.parent_path().string());
  return std::string(call(files, "GET /" + path.filename().string()).header("ETag").value());
}

TEST(ContentTagTest, ReplicasAgreeAndContentsDoNot) {
  const Folder here, there;
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1000}, kTaggedInMemoryMax,
                                   kTaggedInMemoryMax + 1, std::uint64_t{500'000}, kTaggedWholeMax}) {
    for (const time_t modified : {0, 1, 1'700'000'000}) {
      std::string text(size, 'a');
      const std::string tag = tag_of(here.root() / "x", text, modified);
      EXPECT_EQ(tag_of(there.root() / "x", text, modified), tag) << size;
      EXPECT_TRUE(tag.starts_with('"')) << size << " " << tag;
      if (size == 0) continue;
      text.back() = 'b';
      EXPECT_NE(tag_of(here.root() / "x", text, modified), tag) << size << ": the same time and size";
      text.back() = 'a';
      text[size / 3] = 'b';
      EXPECT_NE(tag_of(here.root() / "x", text, modified), tag) << size;
      EXPECT_EQ(tag_of(there.root() / "x", std::string(size, 'a'), modified + 1), tag)
          << "the time does not matter";
    }
  }
}

// Of a file that nobody touches for `later` after its last change.
std::string tag_after(const fs::path& path, std::chrono::nanoseconds later) {
  struct stat info{};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  const int fd = ::open(path.c_str(), O_RDONLY);
  std::string tag = tag_of_file(fd, info, time_of(info.st_ctim) + later);
  ::close(fd);
  return tag;
}

// Almost all of it are holes, so that it takes no room.
void write_large(const fs::path& path, std::uint64_t size, std::string_view inside) {
  Folder::write(path, "");
  fs::resize_file(path, size / 3);
  std::ofstream(path, std::ios::app) << inside;
  fs::resize_file(path, size);
}

// As rsync -t and layers of an image leave it: its time says nothing about its content.
TEST(ContentTagTest, ALargeFileWhoseTimeIsSetIsKnownByItsContent) {
  const Folder here, there;
  const auto tag = [](const Folder& folder, std::uint64_t size, std::string_view inside) {
    write_large(folder.root() / "x", size, inside);
    Folder::set_time(folder.root() / "x", 1'700'000'000);
    return tag_after(folder.root() / "x", 3s);
  };
  const std::string whole = tag(here, kTaggedWholeMax + 1, "a");
  EXPECT_TRUE(whole.starts_with('"')) << whole;
  EXPECT_EQ(tag(there, kTaggedWholeMax + 1, "a"), whole);
  EXPECT_NE(tag(here, kTaggedWholeMax + 1, "b"), whole);
  EXPECT_TRUE(tag_after(here.root() / "x", 1s).starts_with("W/"))
      << "not read as a whole before it has settled";

  const std::string sampled = tag(here, kTaggedWholeIfSetMax + 1, "a");
  EXPECT_TRUE(sampled.starts_with('"')) << sampled;
  EXPECT_EQ(tag_after(here.root() / "x", 4s), sampled);
  EXPECT_EQ(tag_after(here.root() / "x", 1s), "W/" + sampled);
  EXPECT_NE(tag(here, kTaggedWholeIfSetMax + 1, "b"), sampled) << "between the samples";
}

// By all system calls of this process.
std::uint64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::uint64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

TEST(ContentTagTest, ALargeFileIsReadOnceForAllWhoAskMeanwhile) {
  tuza::testing::run_with(4, [] {
    const Folder folder;
    write_large(folder.root() / "x", kTaggedWholeMax, "a");
    std::array<std::string, 8> tags;
    const std::uint64_t before = bytes_read();
    WaitGroup group;
    for (std::string& tag : tags) group.go([&] { tag = tag_after(folder.root() / "x", 3s); });
    group.wait();
    EXPECT_LT(bytes_read() - before, 2 * kTaggedWholeMax);
    for (const std::string& tag : tags) EXPECT_EQ(tag, tags[0]);
  });
}

// A sampled tag must not join bytes of two versions.
TEST(ContentTagTest, ALargeFileWhoseTimeIsTrueIsKnownBySamples) {
  const Folder folder;
  const fs::path path = folder.root() / "large";
  write_large(path, kTaggedWholeMax + 1, "a");
  EXPECT_TRUE(tag_after(path, 1s).starts_with("W/")) << "it may change within the tick";
  const std::string settled = tag_after(path, 10s);
  EXPECT_TRUE(settled.starts_with('"')) << settled;
  EXPECT_EQ("W/" + settled, tag_after(path, 1s)) << "revalidation goes on";
  Folder::write(path, std::string(100'000, 'x'));
  EXPECT_TRUE(std::string(call(FileServer(folder.root().string()), "GET /large").header("ETag").value())
                  .starts_with("W/"))
      << "it has not settled";
}

// Reproducible builds and buildpacks: a time that says nothing.
TEST(ContentTagTest, ConstantTimesAreNoLastModified) {
  const Folder folder;
  for (const time_t modified : {0, 1, 315'532'800, 315'532'801}) {
    const std::string tag = tag_of(folder.root() / "x", "same size 1", modified);
    const FileServer files(folder.root().string());
    const auto ask = [&](const HeaderFields& fields) { return call(files, "GET /x", {.headers = fields}); };
    EXPECT_FALSE(ask({}).header("Last-Modified"));
    const char* const date = "Tue, 01 Jan 2030 00:00:00 GMT";
    EXPECT_EQ(ask({{"If-Modified-Since", date}}).status, 200);
    EXPECT_EQ(ask({{"If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}}).status, 200);
    EXPECT_EQ(ask({{"If-Range", "Thu, 01 Jan 1970 00:00:00 GMT"}, {"Range", "bytes=0-1"}}).status, 200);
    EXPECT_EQ(ask({{"If-None-Match", tag}}).status, 304);
    EXPECT_EQ(ask({{"If-Range", tag}, {"Range", "bytes=0-1"}}).status, 206);
    tag_of(folder.root() / "x", "same size 2", modified);
    EXPECT_EQ(ask({{"If-None-Match", tag}}).status, 200);
    EXPECT_EQ(ask({{"If-Range", tag}, {"Range", "bytes=0-1"}}).status, 200);
  }
}

// Such a time changes with the content, since nobody writes in the future: it hides no change between samples.
TEST(ContentTagTest, ATimeInTheFutureThatHasBeenSetIsAsGoodAsAnyOther) {
  const Folder folder;
  const fs::path path = folder.root() / "x";
  const auto tag = [&](std::string_view text, std::chrono::nanoseconds later) {
    Folder::write(path, text);
    Folder::set_time(path, 4'000'000'000);  // in the year 2096
    return tag_after(path, later);
  };
  std::string text(500'000, 'a');
  const std::string settled = tag(text, 3s);
  EXPECT_TRUE(settled.starts_with('"')) << settled;
  EXPECT_TRUE(tag(text, 1s).starts_with("W/")) << "it may change within the tick";
  text[100'000] = 'b';
  EXPECT_NE(tag(text, 3s), settled);
}

// A date is strong if no other content can have it. One that has been set can be set again.
TEST(ContentTagTest, ADateThatHasBeenSetJoinsNoRanges) {
  const Folder folder;
  const fs::path path = folder.root() / "x";
  const auto date_is_strong = [&](std::chrono::nanoseconds later) {
    struct stat info{};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return validators_of("", info, time_of(info.st_ctim) + later).date_is_strong;
  };
  Folder::write(path, "version 1");
  EXPECT_FALSE(date_is_strong(1s));
  EXPECT_TRUE(date_is_strong(3s));
  Folder::set_time(path, 1'700'000'000);
  EXPECT_FALSE(date_is_strong(3s));
  const FileServer files(folder.root().string());
  const HeaderFields resumed{{"If-Range", "Tue, 14 Nov 2023 22:13:20 GMT"}, {"Range", "bytes=8-"}};
  EXPECT_EQ(call(files, "GET /x", {.headers = resumed}).body, "version 1");
  Folder::write(path.string() + ".new", "version 2");
  Folder::set_time(path.string() + ".new", 1'700'000'000);
  fs::rename(path.string() + ".new", path);
  EXPECT_EQ(call(FileServer(folder.root().string()), "GET /x", {.headers = resumed}).body, "version 2");
}

// -- Types.

TEST(ContentTypesTest, AFileInTheFormOfNginxMayBreakItsLines) {
  const Folder folder;
  const fs::path types = folder.root() / "mime.types";
  Folder::write(types,
                "types { text/x-zero zero; } # all on a line\r\n"
                "types {\r\n"
                "    application/x-a-type-of-a-long-name\r\n"
                "                                     longa # first\r\n"
                "\tlongb;\r\n"
                "    other words;\r\n"
                "    text/x-one one; text/x-two two;\r\n"
                "}\r\n"
                "text/x-apache\n"
                "words of no type\n");
  const ContentTypes own({}, types.string());
  for (const auto& [name, type] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a.zero", "text/x-zero"},
           {"a.longa", "application/x-a-type-of-a-long-name"},
           {"a.longb", "application/x-a-type-of-a-long-name"},
           {"a.one", "text/x-one"},
           {"a.two", "text/x-two"}}) {
    EXPECT_EQ(own.of(name), type);
  }
  for (const char* none : {"a.words", "a.other", "a.types", "a.of", "a.}", "a.;"}) {
    EXPECT_EQ(own.of(none), "application/octet-stream") << none;
  }
  Folder::write(types, "types {\n text/x(y one;\n}\n");
  EXPECT_THROW(ContentTypes({}, types.string()), std::invalid_argument);
  EXPECT_THROW(ContentTypes({}, folder.root().string()), std::system_error) << "a folder";
}

TEST(ContentTypesTest, ThoseOfTheProgramPrecedeThoseOfAFile) {
  const Folder folder;
  const fs::path types = folder.root() / "mime.types";
  Folder::write(types,
                "# a comment\ntypes {\n  text/x-one  one ONE2;  # another\n\tmodel/x\tmdl txt\n"
                "application/nothing\n}\napplication/x-late one\n");
  const ContentTypes own({{"mdl", "model/own"}, {"TWO", "text/two; charset=x"}}, types.string());
  EXPECT_EQ(own.of("a/b.one"), "text/x-one");
  EXPECT_EQ(own.of("b.One2"), "text/x-one");
  EXPECT_EQ(own.of("b.mdl"), "model/own");
  EXPECT_EQ(own.of("b.two"), "text/two; charset=x");
  EXPECT_EQ(own.of("b.txt"), "model/x");
  EXPECT_EQ(own.of("b.html"), "text/html; charset=utf-8");
  EXPECT_EQ(own.of("mdl"), "application/octet-stream");
  EXPECT_EQ(own.of(".mdl"), "application/octet-stream");
  const FileServer files(folder.root().string(), {.types = {{"txt", "text/x-own"}}});
  EXPECT_EQ(call(files, "GET /a.txt").header("Content-Type"), "text/x-own");

  const ContentTypes none({}, "");
  for (const auto& [name, type] :
       std::initializer_list<std::pair<const char*, const char*>>{{"a.vtt", "text/vtt; charset=utf-8"},
                                                                  {"a.m3u8", "application/vnd.apple.mpegurl"},
                                                                  {"a.ts", "video/mp2t"},
                                                                  {"a.mov", "video/quicktime"},
                                                                  {"a.aac", "audio/aac"},
                                                                  {"a.xhtml", "application/xhtml+xml"},
                                                                  {"a.ics", "text/calendar; charset=utf-8"},
                                                                  {"a.yaml", "application/yaml"},
                                                                  {"a.yml", "application/yaml"},
                                                                  {"a.JSONLD", "application/ld+json"},
                                                                  {"a.mpd", "application/dash+xml"}}) {
    EXPECT_EQ(none.of(name), type);
  }
  EXPECT_THROW(ContentTypes({{"", "text/x"}}, ""), std::invalid_argument);
  EXPECT_THROW(ContentTypes({{".x", "text/x"}}, ""), std::invalid_argument);
  for (const char* bad : {"", "text", "/x", "text/", "te xt/x", "text/x\r\nSet-Cookie: a=b", "text/x/y"}) {
    EXPECT_THROW(ContentTypes({{"x", bad}}, ""), std::invalid_argument) << bad;
  }
  EXPECT_THROW(FileServer(folder.root().string(), {.types_file = "/no/such/file"}), std::system_error);
}

}  // namespace
}  // namespace tuza::http::testing
