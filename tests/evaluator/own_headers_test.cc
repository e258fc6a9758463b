// Conditionals, own headers and the lines of messages: what is said about a text is what its compilers see in it.
#include "cuda_source/own_headers.h"
#include "cuda_source/conditionals.h"
#include "cuda_source/lexer.h"
#include "judge/compile/cuda_toolkit.h"
#include "judge/compile/source_policy.h"
#include "process/subprocess.h"
#include "test.h"

namespace kgrpo::cuda_source {
namespace {

using testing::HasSubstr, testing::Not;

// "a.b", the words that are left of a source with "a" and so on in its branches; '?' where a conditional is undecided.
std::string Left(const std::string& source) {
  const ActiveSource active = WithoutInactive(source);
  EXPECT_EQ(std::count(active.text.begin(), active.text.end(), '\n'), std::count(source.begin(), source.end(), '\n'));
  std::string words = active.undecided == std::string::npos ? "" : "?";
  for (const Token& token : Lex(active.text).tokens) {
    if (token.kind != Token::Kind::kDirective) words += token.text;
  }
  return words;
}

TEST(Conditionals, AreDecidedByTheText) {
  const std::pair<const char*, const char*> kCases[] = {
      {"#ifdef USE\na\n#else\nb\n#endif\nc", "bc"},
      {"#define USE\n#ifdef USE\na\n#else\nb\n#endif\nc", "ac"},
      {"#define USE\n#undef USE\n#ifndef USE\na\n#endif", "a"},
      {"#if defined(USE) || !defined OTHER\na\n#endif", "a"},
      {"#define V 0x10u\n#if V == 16 && (V >> 2) == 4\na\n#elif V\nb\n#else\nc\n#endif", "a"},
      {"#define A B\n#define B 3\n#if A * 2 > 5 ? 0 : 1\na\n#elif A - 3\nb\n#else\nc\n#endif", "c"},
      {"#define S 1 + 1\n#if S * 2 == 3\na\n#endif", "a"},
      {"#if 0\n#if 1\na\n#else\nb\n#endif\n#elif 1\nc\n#elif 1\nd\n#else\ne\n#endif", "c"},
      {"#if NOT_DEFINED\na\n#elif not NOT_DEFINED\nb\n#endif", "b"},
      {"#ifdef USE // why\na\n#endif /* USE */\nb", "b"},
      {"#if \\\n 0\na\n#endif\nb", "b"},
      {"#if 1'000 == 1000 and 0b11 == 3 and ~0 == -1\na\n#endif", "a"},
      {"/*\n#if 0\n*/ a\n", "a"},
      {"#if 0\n don't \"\n#endif\na", "a"},
      {"# /* b */ if 0\na\n%:endif\nc", "c"},
      {"\xEF\xBB\xBF#if 0\na\n#endif\r\nb", "b"},
      {"#ifdef USE\na\n#elifdef OTHER\nb\n#elifndef THIRD\nc\n#endif", "c"},
      // what compilers, options and headers define
      {"#ifdef __CUDA_ARCH__\na\n#else\nb\n#endif", "?ab"},
      {"#if CUDART_VERSION > 9000\na\n#endif", "?a"},
      {"#ifndef M_PI\na\n#endif", "?a"},
      {"#ifdef assert\na\n#endif", "?a"},
      {"#if __has_include(<x.h>)\na\n#endif", "?a"},
      {"#if defined(__CUDACC__) && 0\na\n#else\nb\n#endif", "b"},
      {"#if 1 || CUDA_VERSION\na\n#else\nb\n#endif", "a"},
      {"#ifdef __CUDACC__\n#define USE\n#endif\n#ifdef USE\na\n#endif", "?a"},
      {"#ifdef _X\na\n#elif 0\nb\n#elif 1\nc\n#else\nd\n#endif", "?ac"},
      // no expressions
      {"#if 1 +\na\n#endif", "?a"},
      {"#if (1\na\n#endif", "?a"},
      {"#if 1 / 0\na\n#endif", "?a"},
      {"#define F(x) x\n#if F(1)\na\n#endif", "?a"},
      {"#else\na\n#endif\n#endif\nb", "ab"}};
  for (const auto& [source, left] : kCases) EXPECT_EQ(Left(source), left) << source;
  EXPECT_EQ(Left("#if " + std::string(100000, '(') + "\na\n#endif\n"), "?a");
  EXPECT_EQ(Left("#define A A A\n#define B A A A A\n#if B\na\n#endif\n"), "?a");
}

// Macros that stand for a billion others, none of which leaves a word, are not followed.
TEST(Conditionals, AreReadInBoundedTime) {
  std::string source = "#define M0\n";
  for (int i = 1; i < 32; ++i) {
    const std::string before = " M" + std::to_string(i - 1);
    source += "#define M" + std::to_string(i) + before + before + before + "\n";
  }
  EXPECT_EQ(Left(source + "#if M31 1\na\n#endif\nb"), "?ab");
}

// The rule that says which macros headers may define is held against the headers.
TEST(Conditionals, KnowWhichMacrosAreNotTheSources) {
  std::string source;
  std::istringstream headers(evaluator::IncludePolicy({}));
  std::string header;
  std::getline(headers, header);  // cuda/std/*
  while (std::getline(headers, header)) source += "#include <" + header + ">\n";
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "all_headers.cu";
  std::ofstream(file) << source;
  process::Subprocess::Spec spec;
  spec.argv = {evaluator::CudaToolkit::Find().nvcc, "-E", "-Xcompiler", "-dM", "-std=c++17", file.string()};
  const process::Subprocess::Result result = process::Subprocess::Run(spec, 120, size_t{8} << 20);
  ASSERT_TRUE(result.Succeeded()) << result.output.substr(0, 500);
  std::istringstream lines(result.output);
  int macros = 0;
  for (std::string word, name; lines >> word;) {
    if (word != "#define" || !(lines >> name)) continue;
    ++macros;
    EXPECT_TRUE(IsForeignMacro(name.substr(0, name.find('(')))) << name;
  }
  EXPECT_GT(macros, 3000);
  for (const char* own : {"DEBUG_BUILD", "USE_HIP", "BLOCK_SIZE", "TILE", "WITH_CUDNN", "N", "FOO_H"})
    EXPECT_FALSE(IsForeignMacro(own)) << own;
}

class OwnHeaders : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string Read(const std::string& text) {
    Write("k.cu", text);
    return ReadKernelWithOwnHeaders((folder_ / "k.cu").string(), {});
  }
  // What a compiler sees: the output of the preprocessor, without line markers and empty lines.
  std::string Preprocessed(const std::string& text) {
    Write("read.cc", Read(text));
    process::Subprocess::Spec spec;
    spec.argv = {"g++", "-std=c++17", "-E", "-P", (folder_ / "read.cc").string()};
    return process::Subprocess::Run(spec, 60).output;
  }
  // Checks `PlacesOfLines` against the preprocessor: at each word __LINE__ is expanded.
  void ExpectLine(const std::string& text, const std::string& word, const std::string& place) {
    const std::string read = Read(text);
    const auto line = std::count(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(read.find(word)), '\n');
    const SourcePlace found = PlacesOfLines(read, "kernel.cu")[static_cast<size_t>(line)];
    EXPECT_EQ(found.file + ":" + std::to_string(found.line), place) << read;
    std::string asking = read;
    asking.replace(asking.find(word), word.size(), word + " __FILE__ __LINE__");
    Write("kernel.cu", asking);
    process::Subprocess::Spec spec;
    spec.argv = {"g++", "-std=c++17", "-E", "-P", "-x", "c++", "kernel.cu"};
    spec.directory = folder_.string();
    const std::string file = place.substr(0, place.find(':')), number = place.substr(place.find(':') + 1);
    EXPECT_THAT(process::Subprocess::Run(spec, 60).output, HasSubstr(word + " \"" + file + "\" " + number)) << read;
  }
  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("own_headers_" + std::to_string(getpid()));
};

TEST_F(OwnHeaders, LeaveTheLinesAfterThem) {
  Write("h.h", "int of_h;\n\n\n\nint of_h_too;\n");
  Write("nested.h", "#ifdef NOPE\n#include \"h.h\"\n#else\nint other;\n#endif\nint nested_last;\n");
  ExpectLine("#ifdef NOPE\n#include \"h.h\"\n#endif\nint last;\n", "last", "kernel.cu:4");
  ExpectLine("#define YES\n#ifdef YES\n#include \"h.h\"\n#else\nint b;\n#endif\nint last;\n", "last", "kernel.cu:7");
  ExpectLine("#ifndef NOPE\n#ifdef NOPE\n#include \"h.h\"\n#elif 1\nint last;\n#endif\n#endif\n", "last",
             "kernel.cu:5");
  ExpectLine("#ifdef NOPE\n#ifdef NOPE\n#include \"h.h\"\n#endif\n#endif\nint last;\n", "last", "kernel.cu:6");
  ExpectLine("#include \"nested.h\"\nint last;\n", "nested_last", "nested.h:6");
  ExpectLine("#include \"nested.h\"\nint last;\n", "int last", "kernel.cu:2");
  ExpectLine("#ifdef NOPE\n#include \"h.h\"\n#endif  // \\\n not NOPE\nint last;\n", "last", "kernel.cu:5");
  ExpectLine("#include \"h.h\" /* two\nlines */\nint last;\n", "last", "kernel.cu:3");
  ExpectLine("/* x */ #include \"h.h\"\r\nint last;\r\n", "last", "kernel.cu:2");
  ExpectLine("#define M(a) \\\n a\n#include \"h.h\"\nint last;\n", "last", "kernel.cu:4");
}

// Those of the author, too: in branches that are read, and nowhere else.
TEST_F(OwnHeaders, LinesFollowLineDirectives) {
  Write("h.h", "int of_h;\n");
  ExpectLine("#line 100\nint last;\n", "last", "kernel.cu:100");
  ExpectLine("#line 100 \"made.cu\"\nint a;\nint last;\n", "last", "made.cu:101");
  ExpectLine("# 100 \"made.cu\"\nint last;\n", "last", "made.cu:100");
  ExpectLine("#line 100 \"made.cu\"\n#include \"h.h\"\nint last;\n", "last", "made.cu:101");
  ExpectLine("#if 0\n#line 100 \"made.cu\"\n#endif\nint last;\n", "last", "kernel.cu:4");
  ExpectLine("#ifdef NOPE\n#line 100\n#else\nint last;\n#endif\n", "last", "kernel.cu:4");
  ExpectLine("const char* s = R\"(\n#line 100 \"made.cu\"\n)\"; int last;\n", "last", "kernel.cu:3");
  ExpectLine("/*\n#line 100\n*/ int last;\n", "last", "kernel.cu:3");
}

TEST_F(OwnHeaders, AreReadWhereACompilerReadsThem) {
  Write("once.h", "#pragma once\nint once;\n");
  Write("guarded.h", "// Guarded.\n#ifndef GUARDED_H\n#define GUARDED_H\n#include \"once.h\"\nint guarded;\n#endif\n");
  Write("list.def", "ENTRY(one)\nENTRY(two)\n");
  // in a branch that is not read, then in one that is
  EXPECT_EQ(Preprocessed("#ifdef NOPE\n#include \"once.h\"\n#endif\n#include \"once.h\"\n#include \"once.h\"\n"),
            "int once;\n");
  EXPECT_EQ(Preprocessed("#ifdef NOPE\n#include \"guarded.h\"\n#endif\n#include \"guarded.h\"\n#include \"once.h\"\n"),
            "int once;\nint guarded;\n");
  EXPECT_EQ(Preprocessed("#if 1\n#include \"once.h\"\n#endif\n#include \"guarded.h\"\n"), "int once;\nint guarded;\n");
  // a list is read as often as it is included
  EXPECT_EQ(Preprocessed("#define ENTRY(a) int a;\n#include \"list.def\"\n#undef ENTRY\n#define ENTRY(a) f(a);\n"
                         "#include \"list.def\"\n"),
            "int one;\nint two;\nf(one);\nf(two);\n");
  // comments and literals include nothing
  EXPECT_THAT(Read("/*\n#include \"once.h\"\n*/\nconst char* s = R\"(\n#include \"once.h\"\n)\";\n"),
              Not(HasSubstr("int once")));
  // their files are not there for a compiler to find
  EXPECT_EQ(Preprocessed("#if __has_include(\"once.h\")\n#include \"once.h\"\n#else\nint none;\n#endif\n"),
            "int once;\n");
  EXPECT_EQ(Preprocessed("#if __has_include(\"none.h\")\nint there;\n#endif\n"), "");
}

// Every header reads all that are before it: without the guards it would be 2^20 texts.
TEST_F(OwnHeaders, AreNotMultiplied) {
  for (int i = 0; i < 20; ++i) {
    std::string text = "#ifndef H" + std::to_string(i) + "_H\n#define H" + std::to_string(i) + "_H\n";
    for (int k = 0; k < i; ++k) text += "#include \"h" + std::to_string(k) + ".h\"\n";
    Write("h" + std::to_string(i) + ".h", text + "int h" + std::to_string(i) + ";\n#endif\n");
  }
  EXPECT_LT(Read("#ifdef NOPE\n#include \"h19.h\"\n#endif\n#include \"h19.h\"\n").size(), 40000u);
  for (int i = 0; i < 20; ++i) {
    std::string text = "int h" + std::to_string(i) + ";\n";
    for (int k = 0; k < i; ++k) text += "#include \"h" + std::to_string(k) + ".h\"\n";
    Write("h" + std::to_string(i) + ".h", text + std::string(1000, '\n'));
  }
  EXPECT_THAT(test::MessageOf([&] { Read("#include \"h19.h\"\n"); }, 0, "none"), HasSubstr("larger than 16 MiB"));
  Write("self.h", "int self;\n#include \"self.h\"\n");
  EXPECT_EQ(Preprocessed("#include \"self.h\"\n"), "int self;\n");
}

TEST_F(OwnHeaders, MayBeginWithAByteOrderMark) {
  Write("h.h", "\xEF\xBB\xBFint of_h;\n");
  EXPECT_EQ(Preprocessed("\xEF\xBB\xBF#include \"h.h\"\nint last;\n"), "int of_h;\nint last;\n");
}

}  // namespace
}  // namespace kgrpo::cuda_source

namespace kgrpo::evaluator {
namespace {

TEST(CheckedIncludes, LeavesBranchesToTheCompiler) {
  const std::string source =
      "#define M \\\n 1\n#ifdef NOPE\n#include \"other.h\"  // why\n#include NAME\n#endif\nint last;\n";
  const CheckedIncludes checked = CheckIncludes(source, {});
  EXPECT_EQ(checked.why, "");
  EXPECT_EQ(checked.source,
            "#define M  1\n\n#ifdef NOPE\n#error kgrpo_include_is_not_allowed_0// why\n"
            "#error kgrpo_include_is_not_allowed_1\n#endif\nint last;\n");
  EXPECT_THAT(checked.WhyRefused("kernel.cu:4:2: error: #error kgrpo_include_is_not_allowed_0\n"),
              testing::StartsWith("line 4: #include of \"other.h\" is not allowed"));
  EXPECT_EQ(checked.WhyRefused("error: #error kgrpo_include_is_not_allowed_1"),
            "line 5: #include must name a header plainly, not through a macro");
  EXPECT_EQ(checked.WhyRefused("error: #error kgrpo_include_is_not_allowed_2"), "");
  EXPECT_EQ(checked.WhyRefused("error: #error other"), "");
  const std::string plain = "#include <cmath>\n#if 1\n#include <cstdio>\n#endif\n";
  EXPECT_EQ(CheckIncludes(plain, {}).source, plain);
}

// A compiler that sees less of a comment or literal than this reader would open a header unchecked.
TEST(CheckedIncludes, SeesWhatCompilersSee) {
  for (const char* source :
       {"#define A \"/*\"\n#include <fstream>\n//*/\n", "#define A '/*'\n#include <fstream>\n//*/\n",
        "#define A 1'0 /* x */\n#include <fstream>\n", "#error don't /*\n#include <fstream>\n//*/\n",
        "#define A 1 // \"\n#include <fstream>\n", "%:include <fstream>\n", "%\\\n:include <fstream>\n",
        "#inc\\\nlude <fstream>\n", "/\\\n* x */ #include <fstream>\n", "#include <fstream",
        "#if 1\n#endif\n#include A\n", "\xEF\xBB\xBF#include <fstream>\n",
        "#include <a/*b>\n#include <fstream>\n//*/\n", "int a = 1'0;\n#include <fstream>\n",
        "const char* a = R\"x(\n)\" )x\";\n#include <fstream>\n"})
    EXPECT_NE(CheckIncludes(source, {}).why, "") << source;
}

}  // namespace
}  // namespace kgrpo::evaluator
