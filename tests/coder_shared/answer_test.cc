// coder_shared: what becomes of the answers of answers.txt (tests/golden/coder_shared.tar.xz), of their prefixes and of
// texts made of their pieces.
#include "coder_shared/answer.h"

#include "../processor_time.h"
#include "coder_shared/source.h"
#include "coder_shared/text.h"
#include "cuda_source/lexer.h"
#include "test.h"

namespace kgrpo::coder_shared {
namespace {

constexpr const char* kSignature = "extern \"C\" void launch(float* x)";
constexpr const char* kOutcomes[] = {"ok", "not_applicable", "unclear", "refused", "truncated", "no_code", "failed"};

struct Row {
  std::string name, is, answer;
  std::string source = "C", finish = "stop", given = "B";
};

// The rows of answers.txt.
class Table {
 public:
  Table() {
    std::ifstream file(KGRPO_BINARY_DIR "/test_data/coder_shared/answers.txt");
    std::string* text = nullptr;
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("%%% = ")) {
        text = &texts_[line.substr(6)];
      } else if (line.starts_with("%%% ")) {
        text = &AddRow(line.substr(4)).answer;
      } else if (text != nullptr) {
        *text += (text->empty() ? "" : "\n") + line;
      }
    }
    for (Row& row : rows_) row.answer = Filled(row.answer) + "\n";
  }

  const std::vector<Row>& rows() const { return rows_; }

  // The texts of some names, joined by an empty line.
  std::string Text(const std::string& names) const {
    std::istringstream words(names);
    std::string text;
    for (std::string name; words >> name;) text += (text.empty() ? "" : "\n") + Filled(texts_.at(name)) + "\n";
    return text;
  }

 private:
  Row& AddRow(const std::string& head) {
    std::vector<std::string> parts;
    for (size_t at = 0; at < head.size();) {
      const size_t end = std::min(head.find(" | ", at), head.size());
      parts.push_back(head.substr(at, end - at));
      at = end + 3;
    }
    Row& row = rows_.emplace_back();
    row.name = parts.at(0);
    row.is = parts.at(1);
    for (const std::string& part : parts) {
      if (part.starts_with("source ")) row.source = part.substr(7);
      if (part.starts_with("finish ")) row.finish = part.substr(7);
      if (part.starts_with("given ")) row.given = part.substr(6);
    }
    return row;
  }

  // The text with each @NAME@ of a text replaced.
  std::string Filled(const std::string& text) const {
    std::string filled;
    for (size_t at = 0; at < text.size(); ++at) {
      const size_t end = text[at] == '@' ? text.find('@', at + 1) : std::string::npos;
      const auto found = end == std::string::npos ? texts_.end() : texts_.find(text.substr(at + 1, end - at - 1));
      filled += found == texts_.end() ? text.substr(at, 1) : Filled(found->second);
      if (found != texts_.end()) at = end;
    }
    return filled;
  }

  std::map<std::string, std::string> texts_ = {{"0", std::string(1, 0)}, {"d", "\r"},        {"a0", "\u00a0"},
                                               {"200b", "\u200b"},       {"feff", "\ufeff"}, {"201c", "\u201c"},
                                               {"201d", "\u201d"},       {"2019", "\u2019"}, {"2026", "\u2026"}};
  std::vector<Row> rows_;
};

const Table& Answers() {
  static const Table table;
  return table;
}

ReadAnswer Read(const std::string& text, const std::string& finish_reason = "stop", const std::string& given = "B") {
  return ReadKernel({text, "", finish_reason}, {kSignature, Answers().Text(given)});
}

TEST(AnswersTest, Table) {
  EXPECT_GE(Answers().rows().size(), 120u);
  for (const Row& row : Answers().rows()) {
    const ReadAnswer read = Read(row.answer, row.finish, row.given);
    const bool ok = read.outcome == KGRPO_CODER_OK;
    EXPECT_EQ(std::string(kOutcomes[read.outcome]) + " " + read.form, row.is) << row.name << ": " << read.message;
    EXPECT_EQ(read.source, ok ? Answers().Text(row.source) : "") << row.name;
    EXPECT_EQ(read.message.empty(), ok) << row.name;
    EXPECT_LT(read.message.size(), 500u) << row.name;
  }
}

// Whatever the place where an answer is cut off, and whether the service says so or not, its beginning gives no other
// kernel than a complete one.
TEST(AnswersTest, PrefixesGiveCompleteKernelsOnly) {
  size_t kernels = 0;
  for (const Row& row : Answers().rows()) {
    if (!row.is.starts_with("ok ")) continue;
    for (size_t size = 0; size < row.answer.size(); ++size) {
      const ReadAnswer cut = Read(row.answer.substr(0, size), "length", row.given);
      const ReadAnswer stopped = Read(row.answer.substr(0, size), "stop", row.given);
      kernels += cut.outcome == KGRPO_CODER_OK ? 1 : 0;
      for (const std::string& source : {cut.source, stopped.source}) {
        ASSERT_TRUE(source.empty() || (IsBalanced(source) && cuda_source::DefinesFunction(source, "launch") &&
                                       NamesOf(source).only_launched.empty()))
            << row.name << ", " << size << " bytes:\n"
            << source;
      }
    }
  }
  EXPECT_GT(kernels, 1000u);
}

TEST(AnswersTest, TheServicesRefusal) {
  const ReadAnswer read = ReadKernel({"", "I can't help with that", "stop"}, {kSignature, ""});
  EXPECT_EQ(read.outcome, KGRPO_CODER_REFUSED);
  EXPECT_THAT(read.message, ::testing::HasSubstr("I can't help"));
}

TEST(AnswersTest, WithoutARequiredFunctionAnyCodeWillDo) {
  const auto read = [](const std::string& text) { return ReadKernel({text, "", "stop"}, {"", "int c;\n"}); };
  EXPECT_EQ(read("```\nint a;\n```\n```\nint b;\n```").source, "int b;\n");
  EXPECT_EQ(read("```\n\n```").outcome, KGRPO_CODER_NO_CODE);
  EXPECT_EQ(read("no idea").outcome, KGRPO_CODER_NO_CODE);
  EXPECT_EQ(read("```\nint c; // as it was\n```").outcome, KGRPO_CODER_NOT_APPLICABLE);
}

// An answer that takes long to read would stop a run: each of these took minutes in a reader whose time is quadratic.
TEST(AnswersTest, WhatIsMadeToBeSlowIsNot) {
  const auto times = [](size_t count, const std::string& text) {
    std::string repeated;
    while (count-- > 0) repeated += text;
    return repeated;
  };
  const auto texts = [&](size_t many) {
    return std::vector<std::string>{
        "```cuda\n" + times(many, "launch(") + std::string(many, ')') + "\n```",
        times(many, "```\n"),
        times(many, "```cuda\n"),
        times(many, "```md\na\n"),
        std::string(16 * many, '`'),
        "```cuda\n" + times(many, "R\"x ") + "\n```",
        "```cuda\nR\"" + std::string(4 * many, ')') + "(" + std::string(8 * many, ')') + "\n```",
        times(many / 8, "```\nvoid launch() {}\n```\n"),
        times(many / 16, "```\n/* rest unchanged */\nvoid launch() { f(); }\n```\n"),
        times(many, "a</think>"),
        times(many, "<think>"),
        times(many, "a<think></think>"),
        times(many, "\n[think]"),
        times(many, "<details>"),
        "```cuda\n" + times(many / 2, "/*\n```\n```\n*/\n") + "void launch() {}\n```",
        times(many, "{\nfoo;\nAa b c\n") + "launch",
        "import x\n" + times(many, "\"launch\" + "),
        "{\"launch\": [" + times(many, "\"a\", ") + "]}",
        times(many, "{\"a"),
        times(many, "{\"a\": {"),
        times(many, "<pre>"),
        times(many, "<search>a</search><replace>b</replace>"),
        times(many, "> > > <<<"),
        "```diff\n" + times(many / 2, "-a\n+b\n") + "```",
        "```\n" + times(many / 4, "<<<<<<< A\nvoid\n=======\nb\n>>>>>>> B\n") + "```",
        "```cuda\nvoid launch() {" + times(many / 2, "f<1><<<1,1>>>();") + "}\n```",
        times(many / 4, "// ... same\nint a;\n") + "void launch() {}",
        "```cuda\nvoid launch() {\n" + times(many, "// the same value\n") + "}\n```",
        "```cuda\n__device__ void f() {}\nvoid launch() {\n" + times(many / 2, "// the row\na();\n") + "}\n```",
        "```yaml\n" + times(many, "launch: |\n a\n") + "```",
        times(4 * many, "\n")};
  };
  const auto read = [](const std::string& text, const std::string& current) {
    ReadKernel({text, "", "stop"}, {"void launch()", current});
  };
  constexpr size_t kMany = 1 << 13;
  const std::string current = "void launch() {}" + times(kMany, "\na();") + std::string(4 * kMany, ' ');
  const std::vector<std::string> small = texts(kMany), large = texts(4 * kMany);
  for (size_t i = 0; i < small.size(); ++i)
    test::ExpectLinear([&] { read(small[i], current); }, [&] { read(large[i], current); }, small[i].substr(0, 60));
}

// Whatever is cut out of answers and put together: an outcome with a reason, or a kernel that is not the given one.
TEST(AnswersTest, AnythingEndsInOneOutcome) {
  std::vector<std::string> pieces = {std::string(1, '\0')};
  std::istringstream separated(
      "```$```cuda\n$\n$~~~\n$<think>$</think>$launch(${$}$\"$'$R\"x($/*$*/$//$\\\n$\r\n$UNCLEAR: $#include "
      "<a>\n$\xc3$($)$"
      "\\u00$&lt;$@@ -1 +1 @@\n$-$+$<<<<<<< A\n$=======\n$>>>>>>> B\n$import x\n$'''${\"a\": \"$"
      "<|channel|>final<|message|>$</pre>$1 | $> $\xe2\x80\x9c$...$<<<$#define $#include \"x\"\n$x:\n$cat <<E\nE\n");
  for (std::string piece; std::getline(separated, piece, '$');) pieces.push_back(piece);
  for (const char* name : {"B", "C", "KERNEL", "HOST", "B", "C"}) pieces.push_back(Answers().Text(name));
  uint64_t state = 7;
  size_t kernels = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += pieces[(state >> 33) % pieces.size()];
    }
    const ReadAnswer read = Read(text, round % 5 == 0 ? "length" : "stop");
    const bool kernel = read.outcome == KGRPO_CODER_OK;
    kernels += kernel ? 1 : 0;
    ASSERT_EQ(kernel, !read.source.empty()) << text;
    ASSERT_EQ(kernel, read.message.empty()) << text;
    ASSERT_FALSE(kernel && Essence(read.source) == Essence(Answers().Text("B"))) << text;
  }
  EXPECT_GT(kernels, 100u);
}

TEST(SourceTest, Definitions) {
  EXPECT_EQ(cuda_source::FunctionName("extern \"C\" void launch(const float* x, int n);"), "launch");
  EXPECT_EQ(cuda_source::FunctionName("no declaration"), "");
  for (const char* source :
       {"void launch(dim3 g = dim3(1, 2)) noexcept { }",
        "void launch(int n); /* later */ void launch(int n)\n// here\n{ }",
        "int big = 1'000'000; char c = '\"'; void launch() {}", "auto s = R\"x(\" ) )x\"; void launch() {}"})
    EXPECT_TRUE(cuda_source::DefinesFunction(source, "launch")) << source;
  for (const char* source :
       {"void launch(int n);", "if (launch(x)) { }", "// \\\nvoid launch() {}", "void launch(int n", "int a;"})
    EXPECT_FALSE(cuda_source::DefinesFunction(source, "launch")) << source;
}

TEST(SourceTest, NamesAtNamespaceScope) {
  const Names names = NamesOf(
      "#define TILE 32\nnamespace a {\nstruct Pair : Base { int inner; };\ntemplate <typename T, int N = 4>\n"
      "__global__ void __launch_bounds__(256) f(T* x, int n = 3) { int local = n; }\nenum class Kind : int { kOne };\n"
      "using Real = float;\nconstexpr int kTable[] = {1};\n}\nextern \"C\" {\nvoid launch(float* x) { f<float, 2><<<1, "
      "TILE>>>(x); g<<<1, 1>>>(x); }\n}\n"
      "__global__ void g(float*);\nint counter;\n");
  EXPECT_THAT(names.defined, ::testing::ElementsAre("Kind", "Pair", "Real", "TILE", "f", "kTable", "launch"));
  EXPECT_THAT(names.only_launched, ::testing::ElementsAre("g"));  // a declaration has no body
  EXPECT_THAT(NamesOf("void launch() { f<1><<<1, 1>>>(); }").only_launched, ::testing::ElementsAre("f"));
}

TEST(SourceTest, SameKernels) {
  const std::pair<const char*, const char*> same[] = {
      {"int a;\n\n  int  b; // two", "/* x */ int a;\nint b;\n"},
      {"int i=n+1;\nk<<<1,1>>>(x);", "int i = n + 1; k<<<1, 1>>>( x );"},
      {"x=-1;y=*p;", "x = -1; y = *p;"},
      {"#define A 1\r\nint a;\r\n", "#define A  1\n\n  int a ;"},
      {"#define A f( \\\n  1)\nint a;", "#define A f( 1)\nint a;"}};
  for (const auto& [a, b] : same) EXPECT_EQ(Essence(a), Essence(b));
  const std::pair<const char*, const char*> other[] = {{"int a;", "int b;"},
                                                       {"a + +b", "a ++b"},
                                                       {"a - -b", "a--b"},
                                                       {"intx;", "int x;"},
                                                       {"#define F (x)\n", "#define F(x)\n"},
                                                       {"#define A 1\nint a;", "#define A 1 int a;"},
                                                       {"int a;\n#if 1\n#endif", "int a; #if 1\n#endif"},
                                                       {"c = ' ';", "c = '  ';"},
                                                       {"s = R\"(a\n b)\";", "s = R\"(a\nb)\";"},
                                                       {"s = \"// a\";", "s = \"// b\";"}};
  for (const auto& [a, b] : other) EXPECT_NE(Essence(a), Essence(b));
}

}  // namespace
}  // namespace kgrpo::coder_shared
