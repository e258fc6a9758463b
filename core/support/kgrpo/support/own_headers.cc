#include "kgrpo/support/own_headers.h"

#include <kgrpo/sdk/error.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

namespace kgrpo {
namespace {

namespace fs = std::filesystem;

constexpr char kKernel[] = "kernel.cu";

// "include" of `#include <x.h>`, and the rest of the line; {"", ""} of other lines.
std::pair<std::string_view, std::string_view> DirectiveOf(std::string_view line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return {};
  const size_t begin = std::min(line.find_first_not_of(" \t", hash + 1), line.size());
  size_t end = begin;
  while (end < line.size() && std::isalpha(static_cast<unsigned char>(line[end])) != 0) ++end;
  return {line.substr(begin, end - begin), line.substr(std::min(line.find_first_not_of(" \t", end), line.size()))};
}

class Reader {
 public:
  Reader(const std::string& file, const std::vector<std::string>& folders, bool confined)
      : folders_(folders.begin(), folders.end()), confined_(confined) {
    if (!confined) return;
    roots_.push_back(fs::weakly_canonical(fs::absolute(file).parent_path()));
    for (const std::string& folder : folders) roots_.push_back(fs::weakly_canonical(folder));
  }

  std::string Read(const std::string& file, std::string* written = nullptr) {
    seen_.insert(fs::path(file).lexically_normal().string());
    seen_.insert(fs::weakly_canonical(file).string());
    Append(file, confined_ ? kKernel : file, written);
    return std::move(text_);
  }

 private:
  // `name`: in #line directives.
  void Append(const std::string& file, const std::string& name, std::string* written = nullptr) {
    std::ifstream stream(file, std::ios::binary);
    const std::string whole((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    if (!stream) throw Error(KGRPO_ERROR_NOT_FOUND, "cannot read the kernel " + file);
    if (written != nullptr) *written = whole;
    std::istringstream lines(whole);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const auto [header, header_name] = OwnHeader(line, fs::path(file).parent_path());
      if (header.empty()) {
        text_ += line;
        if (!lines.eof()) text_ += "\n";
      } else if (seen_.insert(header).second) {
        text_ += "#line 1 \"" + header_name + "\"\n";
        Append(header, header_name);
        if (text_.back() != '\n') text_ += "\n";
        text_ += "#line " + std::to_string(number + 1) + " \"" + name + "\"\n";
      } else {
        text_ += "\n";
      }
    }
  }

  // The file of an own header that the line includes, and its name; empty of other lines.
  std::pair<std::string, std::string> OwnHeader(const std::string& line, const fs::path& beside) const {
    const auto [word, rest] = DirectiveOf(line);
    if (word != "include" || rest.empty() || (rest[0] != '"' && rest[0] != '<')) return {};
    const size_t end = rest.find(rest[0] == '<' ? '>' : '"', 1);
    if (end == std::string_view::npos) return {};
    std::vector<fs::path> places = folders_;
    if (rest[0] == '"') places.insert(places.begin(), beside);
    for (const fs::path& place : places) {
      std::error_code code;
      const fs::path file = (place / rest.substr(1, end - 1)).lexically_normal();
      if (!fs::is_regular_file(file, code)) continue;
      if (!confined_) return {file.string(), file.string()};
      const fs::path target = fs::canonical(file, code);
      for (const fs::path& root : roots_) {
        const fs::path inside = target.lexically_relative(root);
        if (!code && !inside.empty() && *inside.begin() != "..") return {target.string(), inside.string()};
      }
    }
    return {};
  }

  const std::vector<fs::path> folders_;
  const bool confined_;
  std::vector<fs::path> roots_;  // canonical: confined headers lie in one of them
  std::set<std::string> seen_;
  std::string text_;
};

}  // namespace

std::string ReadWithOwnHeaders(const std::string& file, const std::vector<std::string>& folders) {
  return Reader(file, folders, false).Read(file);
}

std::string ReadKernelWithOwnHeaders(const std::string& file, const std::vector<std::string>& folders,
                                     std::string* written) {
  return Reader(file, folders, true).Read(file, written);
}

std::vector<SourcePlace> PlacesOfLines(std::string_view text, const std::string& file) {
  std::vector<SourcePlace> places;
  SourcePlace place = {file, 1};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    places.push_back(place);
    ++place.line;
    const auto [word, rest] = DirectiveOf(text.substr(begin, end - begin));
    if (const size_t open = rest.find('"'); word == "line" && open != std::string_view::npos) {
      place.line = std::atoi(std::string(rest).c_str());
      place.file = rest.substr(open + 1, rest.rfind('"') - open - 1);
    }
    begin = end + 1;
  }
  return places;
}

}  // namespace kgrpo
