// judge/report/kernel_report.h: the page's content, and the escaping of foreign text.
#include "judge/report/kernel_report.h"

#include "judge/report/escape.h"
#include "judge/report/remarks.h"
#include "judge/report/source_notes.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

Evaluation Correct(double seconds) {
  Evaluation evaluation;
  evaluation.compiled = evaluation.correct = true;
  evaluation.verdict = "correct";
  evaluation.seconds = evaluation.seconds_low = evaluation.seconds_high = seconds;
  evaluation.modelled = true;
  evaluation.time_source = "H100 model";
  return evaluation;
}

// As evaluator_sim tells of a kernel.
KernelReport Modelled() {
  KernelReport report{"scale",       "mine.cu",     "// first\nout[i] = 2 * x[i];\n",
                      Correct(1e-4), Correct(2e-4), "device: H100\n"};
  report.candidate.CompareWith(report.baseline);
  report.candidate.diagnosis = "bound by DRAM traffic";
  report.candidate.metrics = {{"modelled_seconds", 1e-4},
                              {"seconds/dram", 8e-5},
                              {"seconds/issue", 1e-5},
                              {"occupancy", 0.625},
                              {"resident_blocks", 5},
                              {"resident_blocks_by/registers", 5},
                              {"resident_blocks_by/threads", 8},
                              {"load_sectors", 4},
                              {"shared_conflicts", 0.5},
                              {"dram_bytes", 1e8},
                              {"l2_bytes", 2e8},
                              {"bytes_per_second", 1e12},
                              {"operations_per_second", 1e12},
                              {"bandwidth_peak", 3.35e12},
                              {"bandwidth_ceiling", 2.8e12},
                              {"l2_bandwidth_ceiling", 7e12},
                              {"arithmetic_peak/fp32", 6e13},
                              {"line/2 dram", 0.9},
                              {"line_sectors/2", 4},
                              {"line_sectors_used/2", 0.5},
                              {"worst_error/out", 0.25},
                              {"worst_error/sums", 0.9375}};
  report.candidate.remarks = RemarksOf(report.candidate.metrics);
  report.baseline.metrics = report.candidate.metrics;
  return report;
}

// As evaluator_cuda measures one, without a profile.
KernelReport Measured() {
  KernelReport report{"scale", "mine.cu", "code\n", Correct(1e-4), Correct(2e-4), ""};
  for (Evaluation* evaluation : {&report.candidate, &report.baseline}) {
    evaluation->modelled = false;
    evaluation->time_source = "NVIDIA H100 80GB HBM3";
    evaluation->seconds_low = 0.98 * evaluation->seconds;
    evaluation->seconds_high = 1.02 * evaluation->seconds;
    evaluation->speedup = 2;
    evaluation->speedup_low = 1.9;
    evaluation->speedup_high = 2.1;
    evaluation->metrics = {{"measured_seconds", 1e-4},
                           {"registers", 30},
                           {"occupancy", 0.5},
                           {"bytes_per_second", 1e12},
                           {"bandwidth_ceiling", 2.9e12},
                           {"operations_per_second", 1e12},
                           {"arithmetic_ceiling", 5e13},
                           {"bandwidth_fraction", 0.35}};
  }
  return report;
}

// The tags of a page, with what is in them but values of attributes that are figures.
std::vector<std::string> TagsOf(const std::string& html) {
  std::vector<std::string> tags;
  for (size_t begin = html.find('<'); begin != std::string::npos; begin = html.find('<', begin + 1))
    tags.push_back(html.substr(begin, html.find('>', begin) - begin + 1));
  return tags;
}

TEST(KernelReportTest, SaysVerdictTimesAndWhereTheTimeGoes) {
  const std::string html = KernelReportHtml(Modelled());
  EXPECT_THAT(html, HasSubstr("<span class=\"verdict correct\">correct</span>"));
  EXPECT_THAT(html, HasSubstr("bound by DRAM traffic"));
  EXPECT_THAT(html, HasSubstr("<b>100 us</b>"));
  EXPECT_THAT(html, HasSubstr("<b>200 us</b>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"soft\">speedup</span><b>2</b>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"soft\">worst error</span><b>0.938</b>"));
  EXPECT_THAT(html, HasSubstr("of the tolerance, in sums (close: other inputs may exceed it)"));
  EXPECT_THAT(html, HasSubstr("modelled, no GPU used"));
  EXPECT_THAT(html, HasSubstr("dram (device memory)<span class=\"track\"><i style=\"width:80.0%\"></i></span>"));
  EXPECT_THAT(html, HasSubstr("80 us (80%)"));
  EXPECT_THAT(html, HasSubstr("registers (room for 5 blocks; block size for 8)"));
  EXPECT_THAT(html, HasSubstr("sectors a load request"));
  EXPECT_THAT(html, HasSubstr("share of bank conflicts"));
  EXPECT_THAT(html, HasSubstr("<svg "));
  EXPECT_THAT(html, HasSubstr("<tr id=\"line2\" class=\"told\">"));
  EXPECT_THAT(html, HasSubstr("mostly dram; 4 sectors a request, 50% of their bytes used"));
  EXPECT_THAT(html, HasSubstr("<pre>out[i] = 2 * x[i];</pre>"));
  EXPECT_THAT(html, HasSubstr("<tr id=\"line1\"><td"));
  EXPECT_THAT(html, HasSubstr("device: H100"));
}

TEST(KernelReportTest, NeedsNothingElse) {
  const std::string html = KernelReportHtml(Modelled());
  for (const char* reference : {"<script", "<link", "<img", "src=", "href=", "url(", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(reference)));
  EXPECT_THAT(html, HasSubstr("default-src 'none'"));
}

TEST(KernelReportTest, LeavesOutWhatWasNotMeasured) {
  const std::string html = KernelReportHtml(Measured());
  EXPECT_THAT(html, HasSubstr("95%: 98 us to 102 us"));
  EXPECT_THAT(html, HasSubstr("<b>2</b><span class=\"soft\">(95%: 1.9 to 2.1)</span>"));
  EXPECT_THAT(html, HasSubstr("<b>measured</b>"));
  EXPECT_THAT(html, HasSubstr("arithmetic, reached"));
  for (const char* modelled : {"Time by", "Waiting", "L2", "limited by", "sectors", "bank conflicts", "with its time",
                               "modelled", "Evaluator", "kernel, by DRAM traffic"})
    EXPECT_THAT(html, Not(HasSubstr(modelled)));
  KernelReport bare = Measured();
  bare.candidate.metrics.clear();
  bare.baseline.metrics.clear();
  const std::string nothing = KernelReportHtml(bare);
  EXPECT_THAT(nothing, Not(HasSubstr("<svg")));
  EXPECT_THAT(nothing, Not(HasSubstr("Where the time goes")));
  EXPECT_THAT(nothing, HasSubstr("<pre>code</pre>"));
}

TEST(KernelReportTest, PutsFindingsBesideTheirLines) {
  KernelReport report = Modelled();
  report.candidate = Evaluation();
  report.candidate.verdict = "race";
  report.candidate.diagnosis = "At n=4: kernel 'scan', line 1: thread (1,0,0) writes while another reads it at line 2";
  const std::string html = KernelReportHtml(report);
  EXPECT_THAT(html, HasSubstr("<span class=\"verdict\">race</span>"));
  EXPECT_THAT(html, HasSubstr("<tr id=\"line1\" class=\"wrong\">"));
  EXPECT_THAT(html, HasSubstr("<tr id=\"line2\" class=\"wrong\">"));
  EXPECT_THAT(html, HasSubstr("<div class=\"finding\">At n=4: kernel &#39;scan&#39;, line 1"));
  EXPECT_THAT(html, Not(HasSubstr("speedup")));
  EXPECT_THAT(html, HasSubstr("reference</text>")) << "the roofline still shows the reference";
  EXPECT_THAT(html, Not(HasSubstr("kernel, by DRAM traffic</text>")));
}

TEST(KernelReportTest, TextOfOthersIsNeverMarkup) {
  const std::string hostile =
      "</pre></td></table></style><script>alert(1)</script><img src=x onerror='a'>\"'>&amp;{{file}}"
      "{{{picture}}}{{#lines}}{{/lines}}{{>x}}<!-- ]]>";
  KernelReport plain = Modelled(), attack = Modelled();
  for (const bool is_attack : {false, true}) {
    KernelReport& report = is_attack ? attack : plain;
    const std::string text = is_attack ? hostile : "words";
    report.problem = report.file = report.evaluator = text;
    report.source = text + "\n" + text + " // more\n";
    report.candidate.correct = false;
    report.candidate.verdict = report.candidate.diagnosis = "line 2 " + text;
    report.baseline.time_source = text;
    report.candidate.metrics.push_back({text, 1});
    report.candidate.metrics.push_back({"registers of " + text, 1});
    report.candidate.metrics.push_back({"line/1 " + text, 0.99});
    report.candidate.metrics.push_back({"seconds/" + text, 1e-5});
    report.candidate.metrics.push_back({"resident_blocks_by/" + text, 1});
    report.candidate.remarks = RemarksOf(report.candidate.metrics);
  }
  const std::string html = KernelReportHtml(attack);
  EXPECT_EQ(TagsOf(html), TagsOf(KernelReportHtml(plain))) << "the same elements, whatever the texts say";
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("{{{picture}}}{{#lines}}{{/lines}}{{&gt;x}}")) << "nor is it a template";
}

TEST(EscapeHtmlTest, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(EscapeHtml("a < b && \"c\" > 'd'\n\t"), "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;\n\t");
  EXPECT_EQ(EscapeHtml("\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"), "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string odd = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapeHtml(std::string("a\0b\x1b", 4)), "a" + odd + "b" + odd);
  EXPECT_EQ(EscapeHtml("\xC0\xBC|\xE2\x82|\xFF|\xED\xA0\x80"),
            odd + odd + "|" + odd + odd + "|" + odd + "|" + odd + odd + odd)
      << "an overlong <, half a character, no character, half a surrogate pair";
  EXPECT_EQ(EscapeHtml("x\xE2\x80\xAEy\r\nz"), "x" + odd + "y\nz") << "nothing turns the direction of the text";
}

TEST(NotesByLineTest, FindsFindingsAndCompilersWords) {
  const auto notes = NotesByLine(
      "It does not compile:\n    | kernel.cu(2): error: expected a \";\"\n| kernel.cu:7:3: error: no\nin line 12, at "
      "line 12 "
      "and line 9\nline none, 3 lines, outline 4x");
  EXPECT_THAT(notes.at(2), ElementsAre("kernel.cu(2): error: expected a \";\""));
  EXPECT_THAT(notes.at(7), ElementsAre("kernel.cu:7:3: error: no"));
  EXPECT_EQ(notes.at(12).size(), 1u);
  EXPECT_EQ(notes.at(9).size(), 1u);
  EXPECT_EQ(notes.size(), 4u);
}

}  // namespace
}  // namespace kgrpo::evaluator
