#include "catalogue.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

namespace kgrpo::judging {
namespace {

namespace fs = std::filesystem;

const std::string kRoot = KGRPO_SOURCE_DIR;
// Of the sources, and of tests/golden/judging.tar.xz, which the build unpacks; KGRPO_TEST_DATA: scripts/test_gpu.
const char* const kTestData = std::getenv("KGRPO_TEST_DATA");
const std::string kFolders[] = {
    kRoot + "/tests/judging/",
    (kTestData == nullptr ? KGRPO_BINARY_DIR "/test_data" : std::string(kTestData)) + "/judging/"};

std::vector<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The docs' verdicts and the GPU evaluator's own.
void CheckVerdicts(const std::vector<std::string>& verdicts) {
  static const std::set<std::string> kKnown = {
      "correct",     "not_compiled",   "forbidden",     "unsupported",    "invalid_launch", "no_launch",
      "crash",       "timeout",        "out_of_memory", "out_of_bounds",  "misaligned",     "trap",
      "race",        "uninitialised",  "divergent",     "input_modified", "wrong",          "non_deterministic",
      "implausible", "unsynchronised", "hidden_work",   "unfinished",     "interference",   "device_fault",
      "not_timed"};
  if (verdicts.empty()) throw std::runtime_error("a verdict is missing");
  for (const std::string& verdict : verdicts) {
    if (kKnown.count(verdict) == 0) throw std::runtime_error("no evaluator says \"" + verdict + "\"");
  }
}

// VERDICT in KERNEL: TEXT, TEXT...
void TakeFinding(const std::string& value, Entry* entry) {
  static const std::regex kForm("(\\w+) in (\\w+): (.+)");
  std::smatch parts;
  if (!std::regex_match(value, parts, kForm))
    throw std::runtime_error("finding: is followed by VERDICT in KERNEL: TEXT");
  CheckVerdicts(entry->verdicts["sim"] = {parts[1]});
  entry->wanted.kernel = parts[2];
  std::istringstream texts(parts[3]);
  for (std::string text; std::getline(texts >> std::ws, text, ',');) entry->wanted.texts.push_back(text);
}

// The length of `// key` in a header line `// key: value`; 0: it is no header line.
size_t HeaderKeyEnd(const std::string& line) {
  if (!line.starts_with("// ")) return 0;
  size_t end = 3;
  while (end < line.size() && std::islower(static_cast<unsigned char>(line[end]))) ++end;
  return end == 3 || line.compare(end, 2, ": ") != 0 ? 0 : end;
}

std::string ReadText(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The kernel that a .diff describes: its header, and the lines of its twin, or of the problem's reference, as it
// changes them.
std::string Edited(const std::string& diff) {
  constexpr std::string_view kFound = "  // found";
  std::istringstream edit(diff);
  std::string made, line, base;
  while (edit.peek() == '/' && std::getline(edit, line)) {
    made += line + "\n";
    if (line.starts_with("// problem: ")) base = kRoot + "/" + line.substr(12) + "/reference.cu";
    if (line.starts_with("// twin: ")) base = kFolders[0] + line.substr(9) + ".cu";
  }
  std::ifstream kept(base);
  std::string old;
  std::streampos body = 0;
  for (; std::getline(kept, old) && HeaderKeyEnd(old) > 0; body = kept.tellg()) continue;
  kept.seekg(body);
  while (std::getline(edit, line)) {
    const std::string text = line.substr(1);
    const std::string plain = text.substr(0, text.size() - (text.ends_with(kFound) ? kFound.size() : 0));
    if (line[0] != '+') {
      while (std::getline(kept, old) && old != plain) made += old + "\n";
      if (!kept) throw std::runtime_error(base + " has no line \"" + plain + "\" after the one before");
    }
    if (line[0] != '-') made += text + "\n";
  }
  while (std::getline(kept, old)) made += old + "\n";
  return made;
}

// Takes one header line. Returns false where the header is over.
bool TakeLine(const std::string& line, Entry* entry) {
  const size_t end = HeaderKeyEnd(line);
  if (end == 0) return false;
  const std::string key = line.substr(3, end - 3), value = line.substr(end + 2);
  if (key == "problem") {
    entry->problem = kRoot + "/" + value;
    if (!fs::exists(entry->problem + "/problem.yaml")) throw std::runtime_error("there is no problem " + value);
  } else if (key == "cuda" || key == "sim") {
    CheckVerdicts(entry->verdicts[key] = Words(value));
  } else if (key == "open") {
    if (value.rfind("sim: ", 0) != 0) throw std::runtime_error("open: begins with sim:");
    entry->open = value.substr(5);
  } else if (key == "speedup") {
    const std::vector<std::string> words = Words(value);
    if (words.size() != 3 || words[0] != "at" || words[1] != "most")
      throw std::runtime_error("speedup: is followed by `at most NUMBER`");
    entry->most_speedup = std::stod(words[2]);
  } else if (key == "least" || key == "most") {
    static const std::regex kForm("([0-9.]+) us: .+");
    std::smatch parts;
    if (!std::regex_match(value, parts, kForm)) throw std::runtime_error(key + ": is followed by NUMBER us: WHY");
    (key == "least" ? entry->least_seconds : entry->most_seconds) = std::stod(parts[1]) * 1e-6;
  } else if (key == "needs") {
    if (value != "namespaces") throw std::runtime_error("needs: knows namespaces alone");
    entry->needs_namespaces = true;
  } else if (key == "differ") {
    if (value.empty()) throw std::runtime_error("differ: says why");
    entry->differ = value;
  } else if (key == "never") {
    entry->never.push_back(value);
  } else if (key == "says") {
    entry->says.push_back(value);
  } else if (key == "finding") {
    TakeFinding(value, entry);
  } else if (key == "twin") {
    if (!fs::exists(kFolders[0] + value + ".cu")) throw std::runtime_error("there is no " + value + ".cu");
    entry->twin = value;
  } else if (key != "hack" && key != "style" && key != "bug") {
    throw std::runtime_error("unknown key \"" + key + "\"");
  }
  return true;
}

Entry ReadEntry(const fs::path& path, const std::string& folder) {
  Entry entry;
  entry.name = folder + "/" + path.stem().string();
  entry.source = path.extension() == ".diff" ? Edited(ReadText(path)) : ReadText(path);
  entry.is_cheat = folder == "cheats";
  std::istringstream lines(entry.source);
  std::string line;
  bool header = true;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      header = header && TakeLine(line, &entry);
    } catch (const std::exception& error) {
      throw std::runtime_error(path.string() + ":" + std::to_string(number) + ": " + error.what());
    }
    if (line.ends_with("// found")) entry.wanted.lines.insert(number);
  }
  const bool bug = folder == "bugs";
  if (entry.problem.empty() || entry.verdicts.size() != (bug ? 1u : 2u) || entry.wanted.lines.empty() == bug)
    throw std::runtime_error(path.string() + ": its first lines must have problem: and " +
                             (bug ? "finding:, and lines end with `// found`" : "cuda: and sim:"));
  return entry;
}

std::vector<Entry> ReadFolders(const std::vector<std::string>& folders) {
  if (!fs::exists(kFolders[1]))
    throw std::runtime_error(kFolders[1] + " is missing: tests/golden/judging.tar.xz holds it");
  std::vector<Entry> entries;
  for (const std::string& folder : folders) {
    for (const std::string& place : kFolders) {
      std::error_code code;
      for (const fs::directory_entry& file : fs::directory_iterator(place + folder, code)) {
        if (file.path().extension() == ".cu" || file.path().extension() == ".diff")
          entries.push_back(ReadEntry(file.path(), folder));
      }
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  return entries;
}

// All that the first group of `form` matches in `text`.
std::vector<std::string> AllOf(const std::string& text, const std::regex& form) {
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), form), end; it != end; ++it) found.push_back((*it)[1]);
  return found;
}

}  // namespace

void PrintTo(const Entry& entry, std::ostream* out) { *out << entry.name; }

const std::vector<Entry>& Catalogue() {
  static const std::vector<Entry> kEntries = ReadFolders({"cheats", "honest"});
  return kEntries;
}

const std::vector<Entry>& Bugs() {
  static const std::vector<Entry> kEntries = ReadFolders({"bugs"});
  return kEntries;
}

std::string TestName(const Entry& entry) {
  std::string name = entry.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

std::string Amiss(const Entry& entry, const std::string& evaluator, const evaluator::KernelEvaluation& evaluation,
                  double speedup) {
  const std::vector<std::string>& wanted = entry.verdicts.at(evaluator);
  std::ostringstream text;
  if (std::find(wanted.begin(), wanted.end(), evaluation.verdict) == wanted.end()) {
    text << "the verdict is " << evaluation.verdict << ", not";
    for (const std::string& verdict : wanted) text << " " << verdict;
    text << ". ";
  }
  if (evaluation.correct != (evaluation.verdict == "correct")) text << "`correct` does not agree with the verdict. ";
  if (!evaluation.correct && evaluation.seconds != 0) text << "it has a time though it is not correct. ";
  if (evaluation.correct && entry.most_speedup) {
    if (!(speedup > 0)) text << "its speedup is not known. ";
    if (speedup > *entry.most_speedup)
      text << "its speedup is " << speedup << ", above " << *entry.most_speedup << ". ";
  }
  if (evaluation.correct && evaluator == "sim") {
    if (entry.least_seconds && evaluation.seconds < *entry.least_seconds)
      text << "it is modelled at " << evaluation.seconds << " s, less than " << *entry.least_seconds << ". ";
    if (entry.most_seconds && evaluation.seconds > *entry.most_seconds)
      text << "it is modelled at " << evaluation.seconds << " s, more than " << *entry.most_seconds << ". ";
  }
  for (const std::string& never : entry.never) {
    if (evaluation.diagnosis.find(never) != std::string::npos) text << "the diagnosis holds \"" << never << "\". ";
  }
  for (const std::string& says : entry.says) {
    if (evaluator == "sim" && evaluation.diagnosis.find(says) == std::string::npos)
      text << "the diagnosis does not say \"" << says << "\". ";
  }
  // Text from a candidate is quoted, and cannot control a terminal.
  std::istringstream lines(evaluation.diagnosis);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (std::any_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
      text << "the diagnosis holds a control character. ";
    if (evaluation.verdict == "not_compiled" && number > 1 && line.rfind("| ", 0) != 0 &&
        line.rfind("The problem asks for ", 0) != 0)
      text << "the diagnosis has a line that is not quoted. ";
  }
  const std::string amiss = text.str();
  return amiss.empty() ? "" : amiss + "The diagnosis: " + evaluation.diagnosis;
}

std::string AmissInFinding(const Entry& entry, const evaluator::KernelEvaluation& evaluation) {
  static const std::regex kLine("line (\\d+)"), kThread("(thread \\([0-9,]+\\) of block \\([0-9,]+\\))");
  const std::string& said = evaluation.diagnosis;
  const Wanted& wanted = entry.wanted;
  std::ostringstream text;
  const std::string& verdict = entry.verdicts.at("sim").front();
  if (evaluation.verdict != verdict) text << "the verdict is " << evaluation.verdict << ", not " << verdict << ". ";
  if (said.find("kernel '" + wanted.kernel + "', line ") == std::string::npos)
    text << "it does not name kernel " << wanted.kernel << " and a line. ";
  for (const std::string& part : wanted.texts) {
    if (said.find(part) == std::string::npos) text << "it does not say \"" << part << "\". ";
  }
  std::set<int> lines;
  for (const std::string& line : AllOf(said, kLine)) lines.insert(std::stoi(line));
  for (const int line : lines) {
    if (wanted.lines.count(line) == 0) text << "it names line " << line << ", which is not marked `// found`. ";
  }
  const std::vector<std::string> threads = AllOf(said, kThread);
  if (threads.empty()) text << "it names no thread. ";
  if (verdict == "race") {
    if (lines != wanted.lines) text << "it does not name both lines. ";
    // An asynchronous copy may be the same thread's, and launches number their threads alike.
    const bool may_be_same =
        said.find("cp.async") != std::string::npos || said.find("between launches") != std::string::npos;
    if (std::set<std::string>(threads.begin(), threads.end()).size() != 2 && !(may_be_same && threads.size() == 2))
      text << "it does not name two threads. ";
  }
  const std::string amiss = text.str();
  return amiss.empty() ? "" : amiss + "The diagnosis: " + said;
}

}  // namespace kgrpo::judging
