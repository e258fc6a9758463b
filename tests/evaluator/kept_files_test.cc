// Files kept by content: found again, refused if damaged, limited in size, shared by several processes.
#include "judge/cache/kept_files.h"

#include "test.h"

#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

namespace kgrpo::evaluator {
namespace {

constexpr uint64_t kMuch = uint64_t{1} << 30;

class KeptFilesTest : public testing::Test {
 protected:
  KeptFilesTest() { fs::remove_all(folder_); }
  ~KeptFilesTest() override { fs::remove_all(folder_); }

  static std::string TextOf(const std::shared_ptr<const MappedFile>& file) {
    if (file == nullptr) return "(nothing)";
    return {reinterpret_cast<const char*>(file->data()) + KeptFiles::kHeaderBytes,
            file->bytes() - KeptFiles::kHeaderBytes};
  }
  static std::string Keep(const KeptFiles& files, const std::string& key, const std::string& text) {
    return TextOf(files.Keep(key, [&](const KeptFiles::Append& append) {
      append(text.data(), text.size() / 2);
      append(text.data() + text.size() / 2, text.size() - text.size() / 2);
    }));
  }
  size_t Count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const std::string folder_ = testing::TempDir() + "/kgrpo_kept_files_" + std::to_string(getpid());
};

TEST_F(KeptFilesTest, AreFoundByLaterProcesses) {
  const std::string text(100'001, 'x');
  {
    const KeptFiles files(folder_, kMuch);
    EXPECT_EQ(TextOf(files.Find("a")), "(nothing)");
    EXPECT_EQ(Keep(files, "a", text), text);
  }
  const KeptFiles files(folder_, kMuch);
  EXPECT_EQ(TextOf(files.Find("a")), text);
  EXPECT_EQ(TextOf(files.Find("b")), "(nothing)");
  EXPECT_EQ(Keep(files, "b", ""), "");
  EXPECT_EQ(TextOf(files.Find("b")), "");
  EXPECT_EQ(Count(), 2u) << "no other file is left";
}

TEST_F(KeptFilesTest, DamagedOnesAreNotFound) {
  const KeptFiles files(folder_, kMuch);
  const std::string text = "what is expected, some hundred bytes of it, so that whole words and a rest are summed";
  const fs::path file = fs::path(folder_) / "a";
  ASSERT_EQ(Keep(files, "a", text), text);
  const uint64_t size = fs::file_size(file);
  for (uint64_t at = 0; at < size; ++at) {
    if (at >= 24 && at < KeptFiles::kHeaderBytes) continue;  // the header's unused part
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(stream.get());
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(static_cast<char>(byte ^ 4)).flush();
    EXPECT_EQ(TextOf(files.Find("a")), "(nothing)") << "byte " << at << " is another";
    stream.seekp(static_cast<std::streamoff>(at));
    stream.put(byte);
  }
  EXPECT_EQ(TextOf(files.Find("a")), text) << "as it was";
  for (const uint64_t bytes : {size + 1, size - 1, size - 16, KeptFiles::kHeaderBytes, uint64_t{20}, uint64_t{0}}) {
    fs::resize_file(file, bytes);
    EXPECT_EQ(TextOf(files.Find("a")), "(nothing)") << bytes << " bytes";
  }
  EXPECT_EQ(Keep(files, "a", text), text);
  EXPECT_EQ(TextOf(files.Find("a")), text) << "written anew";
}

TEST_F(KeptFilesTest, TheOldestGoes) {
  const std::string text(1000, 'x');
  const KeptFiles files(folder_, 3 * (text.size() + KeptFiles::kHeaderBytes));
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 3; ++i) {
    const std::string key(1, static_cast<char>('a' + i));
    Keep(files, key, text);
    fs::last_write_time(fs::path(folder_) / key, now - std::chrono::hours(10 - i));
  }
  EXPECT_NE(files.Find("a"), nullptr);  // used now
  Keep(files, "d", text);
  EXPECT_NE(files.Find("a"), nullptr);
  EXPECT_EQ(files.Find("b"), nullptr);
  EXPECT_NE(files.Find("c"), nullptr);
  EXPECT_NE(files.Find("d"), nullptr);
  Keep(files, "e", std::string(10'000, 'y'));
  EXPECT_NE(files.Find("e"), nullptr) << "the newest stays, however large";
  EXPECT_EQ(Count(), 1u);
}

TEST_F(KeptFilesTest, KeepsNothingWhereItMayNot) {
  const KeptFiles files(folder_, kMuch, false);
  EXPECT_EQ(Keep(files, "a", "text"), "text");
  EXPECT_EQ(files.Find("a"), nullptr);
  EXPECT_EQ(Count(), 0u);
}

TEST_F(KeptFilesTest, WorksWithoutAFolder) {
  std::ofstream(folder_) << "a file";
  const KeptFiles files(folder_, kMuch);
  EXPECT_EQ(files.Find("a"), nullptr);
  EXPECT_EQ(Keep(files, "a", "text"), "text");
  fs::remove(folder_);
}

TEST_F(KeptFilesTest, LeavesNothingWhereWritingFails) {
  const KeptFiles files(folder_, kMuch);
  const auto fail = [](const KeptFiles::Append& append) {
    append("half", 4);
    throw std::runtime_error("no more");
  };
  EXPECT_THROW(files.Keep("a", fail), std::runtime_error);
  EXPECT_EQ(Count(), 0u);
}

// Each finds what another wrote as a whole or not at all, while all of them write and give up files.
TEST_F(KeptFilesTest, SeveralProcessesAtOnce) {
  constexpr int kProcesses = 4, kTurns = 200;
  const auto text_of = [](int key) {
    return std::string(static_cast<size_t>(5000 + key), static_cast<char>('a' + key));
  };
  pid_t children[kProcesses];
  for (int p = 0; p < kProcesses; ++p) {
    children[p] = fork();
    if (children[p] != 0) continue;
    const KeptFiles files(folder_, 20'000);  // three of five
    bool fine = true;
    for (int i = 0; i < kTurns && fine; ++i) {
      const int key = (i * 7 + p) % 5;
      const std::string found = TextOf(files.Find(std::to_string(key)));
      fine = found == text_of(key) ||
             (found == "(nothing)" && Keep(files, std::to_string(key), text_of(key)) == text_of(key));
    }
    _exit(fine ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace kgrpo::evaluator
