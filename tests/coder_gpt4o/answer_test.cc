// coder_gpt4o/answer.h and the parsers it uses: the kernel in an answer, or why there is none.
#include "coder_gpt4o/answer.h"

#include "asked.h"
#include "coder_gpt4o/continuation.h"
#include "coder_gpt4o/source_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kgrpo::coder_gpt4o {
namespace {

using ::testing::HasSubstr;

ReadAnswer Read(const std::string& text, const std::string& finish_reason = "stop", const std::string& refusal = "") {
  return ReadKernel({text, refusal, finish_reason}, {"extern \"C\" void launch(float* x)", kKernelB});
}

bool IsSameKernel(std::string_view a, std::string_view b) {
  return Essence(a) == Essence(b);
}

TEST(ReadKernelTest, AFencedBlockWithAnyTag) {
  for (const char* tag : {"", "cuda", "cpp", "c++", "CUDA C++ title=\"kernel.cu\"", " cuda"}) {
    const ReadAnswer read = Read("Sure:\n```" + std::string(tag) + "\n" + kKernelC + "```\nIt is faster.");
    EXPECT_EQ(read.outcome, KGRPO_CODER_OK) << tag << read.message;
    EXPECT_EQ(read.source, kKernelC) << tag;
  }
}

TEST(ReadKernelTest, OtherFences) {
  EXPECT_EQ(Read(std::string("~~~\n") + kKernelC + "~~~").source, kKernelC);
  EXPECT_EQ(Read(std::string("````cuda\n// ```\n") + kKernelC + "````").source, std::string("// ```\n") + kKernelC);
  // Within a list: as far in as its fence.
  EXPECT_EQ(Read("1. This:\n   ```cuda\n   void launch(float* x) {\n     x[0] = 2;\n   }\n   ```\n").source,
            "void launch(float* x) {\n  x[0] = 2;\n}\n");
  // A fence at the end of the last line of code.
  EXPECT_EQ(Read("```cuda\nvoid launch(float* x) { x[0] = 2; }```").source, "void launch(float* x) { x[0] = 2; }\n");
}

TEST(ReadKernelTest, OfSeveralBlocksTheOneThatDefinesTheFunction) {
  const std::string usage = "```cpp\nlaunch(x);  // call it\n```\n";
  const std::string helper = "```cpp\n__global__ void k(float*);\nextern \"C\" void launch(float* x);\n```\n";
  EXPECT_EQ(Read(usage + Fenced(kKernelC) + helper).source, kKernelC);
  EXPECT_EQ(Read("```bash\nnvcc k.cu\n```\n" + Fenced(kKernelC)).source, kKernelC);
  // Before and after: the one that is new, in whatever order.
  EXPECT_EQ(Read(Fenced(kKernelB) + Fenced(kKernelC)).source, kKernelC);
  EXPECT_EQ(Read(Fenced(kKernelC) + Fenced(kKernelB)).source, kKernelC);
  const std::string better = std::string("#define BETTER\n") + kKernelC;
  EXPECT_EQ(Read(Fenced(kKernelC) + "Better still:\n" + Fenced(better)).source, better);
}

TEST(ReadKernelTest, NoFence) {
  EXPECT_EQ(Read(kKernelC).source, kKernelC);
  EXPECT_EQ(
      Read("Here is the kernel:\n\n#include <cuda_runtime.h>\n" + std::string(kKernelC) + "\nThis should help.").source,
      "#include <cuda_runtime.h>\n" + std::string(kKernelC));
}

TEST(ReadKernelTest, WindowsLineEndsBecomeOurs) {
  EXPECT_EQ(Read("```cuda\r\nvoid launch(float* x) {\r\n  x[0] = 2;\r\n}\r\n```\r\n").source,
            "void launch(float* x) {\n  x[0] = 2;\n}\n");
}

TEST(ReadKernelTest, TheKernelItselfIsNoAnswer) {
  const std::string commented = std::string("// Optimised version\n\n") +
                                "__global__ void k(float* x) {  x[0] = 1; } // fast\n"
                                "extern \"C\" void launch(float* x) { k<<<1, 1>>>(x); }\n/* done */";
  for (const std::string& echo :
       {Fenced(kKernelB), std::string(kKernelB), Fenced(commented), Fenced(kKernelB) + Fenced(kKernelB)}) {
    const ReadAnswer read = Read(echo);
    EXPECT_EQ(read.outcome, KGRPO_CODER_NOT_APPLICABLE) << echo;
    EXPECT_EQ(read.source, "");
    EXPECT_THAT(read.message, HasSubstr("nothing was changed"));
  }
}

TEST(ReadKernelTest, CutOff) {
  const std::string half = std::string("```cuda\n") + std::string(kKernelC).substr(0, 80);
  EXPECT_EQ(Read(half, "length").outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_THAT(Read(half, "length").message, HasSubstr("max_tokens"));
  EXPECT_EQ(Read(Fenced(kKernelC) + "and then", "length").outcome, KGRPO_CODER_TRUNCATED);
  // Also if the service does not say so.
  EXPECT_EQ(Read(half).outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_EQ(Read(half, "").outcome, KGRPO_CODER_TRUNCATED);
  EXPECT_EQ(Read("```cuda\n__global__ void k() { if (", "").outcome, KGRPO_CODER_TRUNCATED);
  // Only the closing fence is missing.
  EXPECT_EQ(Read(std::string("```cuda\n") + kKernelC, "").source, kKernelC);
}

TEST(ReadKernelTest, Refusals) {
  EXPECT_EQ(Read("", "stop", "I can't help with that").outcome, KGRPO_CODER_REFUSED);
  EXPECT_THAT(Read("", "stop", "I can't help with that").message, HasSubstr("I can't help"));
  EXPECT_EQ(Read("", "content_filter").outcome, KGRPO_CODER_REFUSED);
  EXPECT_EQ(Read("I'm sorry, but I can't assist with that.").outcome, KGRPO_CODER_REFUSED);
}

TEST(ReadKernelTest, TheModelsOwnReasons) {
  EXPECT_EQ(Read("NOT APPLICABLE: it is tiled already").outcome, KGRPO_CODER_NOT_APPLICABLE);
  EXPECT_EQ(Read("**Not applicable**: no loop").outcome, KGRPO_CODER_NOT_APPLICABLE);
  EXPECT_EQ(Read("UNCLEAR: what is \"it\"?").outcome, KGRPO_CODER_UNCLEAR);
  EXPECT_THAT(Read("UNCLEAR: what is \"it\"?").message, HasSubstr("what is \"it\"?"));
}

TEST(ReadKernelTest, NoKernel) {
  for (const std::string& text :
       {std::string(), std::string("   \n"), std::string("Use shared memory."), std::string("```python\nprint(1)\n```"),
        std::string("```cuda\n__global__ void k() {}\n```"), std::string("```cuda\n// void launch(float* x) {}\n```"),
        std::string("```cuda\nconst char* s = \"void launch(float*) {}\";\n```"),
        std::string("```cuda\nvoid relaunch(float* x) {}\n```"), std::string(1 << 20, '`')}) {
    const ReadAnswer read = Read(text);
    EXPECT_EQ(read.outcome, KGRPO_CODER_NO_CODE) << text.substr(0, 80);
    EXPECT_EQ(read.source, "");
    EXPECT_NE(read.message, "");
    EXPECT_LT(read.message.size(), 500u);
  }
}

TEST(ReadKernelTest, AKernelOfManyMegabytesIsNone) {
  const std::string huge = "```cuda\n" + std::string(10 << 20, '\n') +
                           "void launch(float* x) { x[0] = " + std::string(2 << 20, '1') + "; }\n```";
  EXPECT_EQ(Read(huge).outcome, KGRPO_CODER_NO_CODE);
  EXPECT_EQ(Read(Fenced(std::string("void launch(float* x) {\0}\n", 26))).outcome, KGRPO_CODER_NO_CODE);
}

TEST(ReadKernelTest, WhatIsMadeToBeSlowIsNot) {
  std::string nested = "```cuda\n";
  for (int i = 0; i < 400000; ++i) nested += "launch(";
  EXPECT_EQ(Read(nested + std::string(400000, ')') + "\n```").outcome, KGRPO_CODER_NO_CODE);
  std::string fences;
  for (int i = 0; i < 400000; ++i) fences += "```\n";
  EXPECT_EQ(Read(fences).outcome, KGRPO_CODER_NO_CODE);
  const size_t megabyte = 1 << 20;
  EXPECT_EQ(Read("```cuda\nR\"" + std::string(megabyte, ')') + "(" + std::string(2 * megabyte, ')') + "\n```").outcome,
            KGRPO_CODER_NO_CODE);
  std::string blocks;
  for (int i = 0; i < 40000; ++i) blocks += "```\nvoid launch() {}\n```\n";
  const std::string current = "void launch() {}" + std::string(megabyte, ' ');
  EXPECT_EQ(ReadKernel({blocks, "", "stop"}, {"void launch()", current}).outcome, KGRPO_CODER_NOT_APPLICABLE);
}

// Whatever is cut out of answers and put together: an outcome with a reason or a kernel that is not the old one.
TEST(ReadKernelTest, AnythingEndsInOneOutcome) {
  const std::string pieces[] = {"```",    "```cuda\n", "\n", "~~~\n", "<think>", "</think>",  kKernelB,
                                kKernelC, "launch(",   "{",  "}",     "\"",      "'",         "R\"x(",
                                "/*",     "*/",        "//", "\\\n",  "\r\n",    "UNCLEAR: ", "#include <a>\n",
                                "\xc3",   "(",         ")"};
  uint64_t state = 7;
  size_t kernels = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += pieces[(state >> 33) % std::size(pieces)];
    }
    const ReadAnswer read = Read(text, round % 5 == 0 ? "" : "stop");
    const bool kernel = read.outcome == KGRPO_CODER_OK;
    kernels += kernel ? 1 : 0;
    ASSERT_EQ(kernel, !read.source.empty()) << text;
    ASSERT_EQ(kernel, read.message.empty()) << text;
    if (kernel) {
      ASSERT_FALSE(IsSameKernel(read.source, kKernelB)) << text;
    }
    const std::string joined =
        JoinAnswer(text.substr(0, text.size() / 2), std::string_view(text).substr(text.size() / 2));
    ASSERT_LE(joined.size(), text.size());
  }
  EXPECT_GT(kernels, 100u);
}

TEST(ReadKernelTest, WithoutARequiredFunctionAnyCodeWillDo) {
  const auto read = [](const std::string& text) { return ReadKernel({text, "", "stop"}, {"", kKernelB}); };
  EXPECT_EQ(read("```\nint a;\n```\n```\nint b;\n```").source, "int b;\n");
  EXPECT_EQ(read("```\n\n```").outcome, KGRPO_CODER_NO_CODE);
  EXPECT_EQ(read("no idea").outcome, KGRPO_CODER_NO_CODE);
  EXPECT_EQ(read(Fenced(kKernelB)).outcome, KGRPO_CODER_NOT_APPLICABLE);
}

TEST(ReadKernelTest, ThoughtsAreNoAnswer) {
  EXPECT_EQ(Read("<think>\n" + Fenced(kKernelB) + "</think>\n" + Fenced(kKernelC)).source, kKernelC);
  EXPECT_EQ(Read("<think>\n" + Fenced(kKernelC)).outcome, KGRPO_CODER_NO_CODE);
  // The opening tag stood in the prompt.
  EXPECT_EQ(Read("A draft:\n" + Fenced(kKernelC) + "No.\n</think>\n\nNOT APPLICABLE: it is tiled").outcome,
            KGRPO_CODER_NOT_APPLICABLE);
  EXPECT_EQ(Read("One</think>two\n" + Fenced(kKernelB) + "</think>" + Fenced(kKernelC)).source, kKernelC);
}

TEST(SourceTextTest, Names) {
  EXPECT_EQ(FunctionName("extern \"C\" void launch(const float* x, int n);"), "launch");
  EXPECT_EQ(FunctionName("void  run_it (void)"), "run_it");
  EXPECT_EQ(FunctionName("no declaration"), "");
}

TEST(SourceTextTest, Definitions) {
  EXPECT_TRUE(Defines("void launch(dim3 g = dim3(1, 2)) noexcept { }", "launch"));
  EXPECT_TRUE(Defines("void launch(int n); /* later */ void launch(int n)\n// here\n{ }", "launch"));
  EXPECT_TRUE(Defines("int big = 1'000'000; char c = '\"'; void launch() {}", "launch"));
  EXPECT_TRUE(Defines("auto s = R\"x(\" ) )x\"; void launch() {}", "launch"));
  EXPECT_TRUE(Defines("auto s = R\"0123456789abcdef(\" ) )0123456789abcdef\"; void launch() {}", "launch"));
  EXPECT_TRUE(Defines("auto s = R\"0123456789abcdefg(\"; void launch() {}", "launch"));  // no raw string
  EXPECT_FALSE(Defines("void launch(int n);", "launch"));
  EXPECT_FALSE(Defines("if (launch(x)) { }", "launch"));
  EXPECT_FALSE(Defines("// \\\nvoid launch() {}", "launch"));
  EXPECT_FALSE(Defines("void launch(int n", "launch"));
}

TEST(SourceTextTest, SameKernels) {
  EXPECT_TRUE(IsSameKernel("int a;\n\n  int  b; // two", "/* x */ int a;\nint b;\n"));
  EXPECT_FALSE(IsSameKernel("int a;", "int b;"));
  // Reformatted.
  EXPECT_TRUE(IsSameKernel("int i=n+1;\nk<<<1,1>>>(x);", "int i = n + 1; k<<<1, 1>>>( x );"));
  EXPECT_TRUE(IsSameKernel("void f(int a,\n       int b) {\n}", "void f(int a, int b)\n{}\n"));
  EXPECT_TRUE(IsSameKernel("x=-1;y=*p;", "x = -1; y = *p;"));
  EXPECT_TRUE(IsSameKernel("#define A 1\r\nint a;\r\n", "#define A  1\n\n  int a ;"));
  EXPECT_TRUE(IsSameKernel("#define A f( \\\n  1)\nint a;", "#define A f( 1)\nint a;"));
  // Differences that change the code.
  EXPECT_FALSE(IsSameKernel("a + +b", "a ++b"));
  EXPECT_FALSE(IsSameKernel("a - -b", "a--b"));
  EXPECT_FALSE(IsSameKernel("intx;", "int x;"));
  EXPECT_FALSE(IsSameKernel("a / *b", "a /*b*/"));
  EXPECT_FALSE(IsSameKernel("#define F (x)\n", "#define F(x)\n"));
  EXPECT_FALSE(IsSameKernel("#define A 1\nint a;", "#define A 1 int a;"));
  EXPECT_FALSE(IsSameKernel("int a;\n#if 1\n#endif", "int a; #if 1\n#endif"));
  EXPECT_FALSE(IsSameKernel("c = '\"'; d = ' ';", "c = '\"'; d = '  ';"));
  EXPECT_FALSE(IsSameKernel("s = R\"(a\n b)\";", "s = R\"(a\nb)\";"));
  EXPECT_FALSE(IsSameKernel("s = \"a  b\";", "s = \"a b\";"));
  EXPECT_FALSE(IsSameKernel("s = \"// a\";", "s = \"// b\";"));
}

TEST(JoinAnswerTest, GoesOnWhereItStopped) {
  const std::string whole = Fenced(kKernelC);
  for (size_t cut = 20; cut + 5 < whole.size(); cut += 7) {
    const std::string begun = whole.substr(0, cut), rest = whole.substr(cut);
    EXPECT_EQ(JoinAnswer(begun, rest), whole) << cut;
  }
}

TEST(JoinAnswerTest, LeavesOutWhatIsRepeated) {
  const std::string whole = Fenced(kKernelC);
  const size_t cut = whole.find("extern");
  EXPECT_EQ(JoinAnswer(whole.substr(0, cut), whole.substr(cut - 25)), whole);
  EXPECT_EQ(JoinAnswer(whole.substr(0, cut), "```cuda\n" + whole.substr(cut)), whole);
  EXPECT_EQ(JoinAnswer(whole.substr(0, cut), "```\n" + whole.substr(cut)), whole);
}

TEST(JoinAnswerTest, AFenceThatClosesStays) {
  const std::string begun = std::string("```cuda\n") + kKernelC;
  EXPECT_EQ(Read(JoinAnswer(begun, "```\nThat is all.")).source, kKernelC);
}

}  // namespace
}  // namespace kgrpo::coder_gpt4o
