// judge/report/roofline.h and roofline_picture.h: the drawing for given measurements, which must lie within
// the picture.
#include "judge/report/roofline.h"

#include "judge/report/roofline_picture.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

Evaluation Kernel(double seconds, double operations, double needed_bytes, double dram_bytes) {
  Evaluation evaluation;
  evaluation.compiled = evaluation.correct = true;
  evaluation.seconds = seconds;
  evaluation.metrics = {{"bytes_per_second", needed_bytes / seconds},
                        {"operations_per_second", operations / seconds},
                        {"dram_bytes", dram_bytes},
                        {"l2_bytes", 2 * dram_bytes},
                        {"bandwidth_peak", 4e12},
                        {"bandwidth_ceiling", 3e12},
                        {"l2_bandwidth_ceiling", 8e12},
                        {"arithmetic_peak/fp32", 6e13},
                        {"arithmetic_peak/half", 1.2e14},
                        {"arithmetic_peak/fp64", 3e13},
                        {"arithmetic_peak/tensor", 6e14},
                        {"issue_peak", 1e12},
                        {"issued_instructions", 1e7}};
  return evaluation;
}

TEST(RooflineTest, OfOperations) {
  const auto roofline = RooflineOf(Kernel(1e-4, 1e9, 1e8, 2e8), Kernel(2e-4, 1e9, 1e8, 4e8));
  ASSERT_TRUE(roofline);
  EXPECT_EQ(roofline->rate_unit, "FLOP/s");
  EXPECT_DOUBLE_EQ(roofline->needed_intensity, 10);
  ASSERT_EQ(roofline->points.size(), 3u);
  EXPECT_EQ(roofline->points[0].name, "reference");
  EXPECT_DOUBLE_EQ(roofline->points[0].intensity, 2.5);
  EXPECT_DOUBLE_EQ(roofline->points[0].rate, 5e12);
  EXPECT_EQ(roofline->points[2].name, "kernel, by DRAM traffic");
  EXPECT_DOUBLE_EQ(roofline->points[2].intensity, 5);
  EXPECT_DOUBLE_EQ(roofline->points[2].rate, 1e13);
  EXPECT_DOUBLE_EQ(roofline->points[1].intensity, 2.5) << "by L2 traffic";
  ASSERT_EQ(roofline->slopes.size(), 3u);
  EXPECT_EQ(roofline->slopes.front().bytes_per_second, 8e12);
  ASSERT_EQ(roofline->peaks.size(), 2u) << "halves and doubles that nobody uses are not drawn";
  EXPECT_EQ(roofline->peaks[0].name, "tensor");
  EXPECT_TRUE(roofline->peaks[0].dashed) << "not used";
  Evaluation doubles = Kernel(1e-4, 1e9, 1e8, 2e8);
  doubles.metrics.push_back({"seconds/fp64", 5e-5});
  EXPECT_EQ(RooflineOf(doubles, Kernel(2e-4, 1e9, 1e8, 4e8))->peaks.back().name, "fp64");
}

TEST(RooflineTest, OfInstructionsWhereNoArithmeticIsNeeded) {
  const auto roofline = RooflineOf(Kernel(1e-4, 1, 1e8, 1e8), Kernel(2e-4, 1, 1e8, 1e8));
  ASSERT_TRUE(roofline);
  EXPECT_EQ(roofline->work, "warp instructions");
  EXPECT_EQ(roofline->needed_intensity, 0);
  EXPECT_DOUBLE_EQ(roofline->points[2].intensity, 0.1);
  EXPECT_DOUBLE_EQ(roofline->points[2].rate, 1e11);
  ASSERT_EQ(roofline->peaks.size(), 1u);
}

TEST(RooflineTest, WithoutAKernelsTimeOrADevice) {
  Evaluation wrong;
  const auto reference = RooflineOf(wrong, Kernel(2e-4, 1e9, 1e8, 4e8));
  ASSERT_TRUE(reference);
  EXPECT_EQ(reference->points.size(), 1u);
  Evaluation bare = Kernel(1e-4, 1e9, 1e8, 2e8);
  bare.metrics.resize(2);
  EXPECT_FALSE(RooflineOf(bare, bare)) << "nothing is known of the device";
  EXPECT_FALSE(RooflineOf(wrong, wrong));
}

// Every figure within an attribute of the picture.
void ExpectInside(const std::string& svg, const std::string& attribute, double least, double most) {
  size_t found = 0;
  for (size_t at = svg.find(" " + attribute + "=\""); at != std::string::npos;
       at = svg.find(" " + attribute + "=\"", at + 1), ++found) {
    const double value = std::stod(svg.substr(at + attribute.size() + 3));
    EXPECT_GE(value, least) << attribute;
    EXPECT_LE(value, most) << attribute;
  }
  EXPECT_GT(found, 0u) << attribute;
}

TEST(RooflinePictureTest, EverythingLiesOnIt) {
  // From a kernel far below the roof to one at it, and intensities over ten decades.
  for (const double operations : {1e7, 1e9, 1e13}) {
    for (const double seconds : {3.4e-5, 1e-1}) {
      const auto roofline = RooflineOf(Kernel(seconds, operations, 1e8, 1e8), Kernel(1, operations, 1e8, 1e9));
      ASSERT_TRUE(roofline);
      const std::string svg = RooflineSvg(*roofline);
      for (const char* attribute : {"x", "x1", "x2", "cx"}) ExpectInside(svg, attribute, 0, 760);
      for (const char* attribute : {"y", "y1", "y2", "cy"}) ExpectInside(svg, attribute, 0, 470);
      for (const char* text :
           {"needed operations a second [FLOP/s]", "needed operations a byte moved [FLOP/byte]", ">reference</text>",
            ">kernel, by DRAM traffic</text>", "fp32 60 TFLOP/s", "DRAM, reached 3 TB/s", "least traffic"})
        EXPECT_THAT(svg, HasSubstr(text));
      EXPECT_EQ(svg.find("nan"), std::string::npos);
      EXPECT_EQ(svg.find("inf"), std::string::npos);
    }
  }
}

// The slope's line goes up one decade for each to the right, and the point on it lies on it.
TEST(RooflinePictureTest, AKernelAtTheBandwidthLiesOnTheSlope) {
  Roofline roofline;
  roofline.slopes = {{"DRAM", 1e12, false, false}};
  roofline.peaks = {{"fp32", 1e14, false}};
  roofline.points = {{"kernel", 10, 1e13, Roofline::Mark::kKernel}};
  const std::string svg = RooflineSvg(roofline);
  const auto after = [&svg](const std::string& what, size_t from) {
    return std::stod(svg.substr(svg.find(what, from) + what.size()));
  };
  const size_t slope = svg.find("stroke=\"#52606d\"");
  const size_t line = svg.rfind("<line", slope), circle = svg.find("<circle");
  const double x1 = after("x1=\"", line), y1 = after("y1=\"", line), x2 = after("x2=\"", line),
               y2 = after("y2=\"", line), x = after("cx=\"", circle), y = after("cy=\"", circle);
  EXPECT_GT(x, x1);
  EXPECT_LT(x, x2);
  EXPECT_NEAR((y - y1) / (x - x1), (y2 - y1) / (x2 - x1), 0.01);
}

}  // namespace
}  // namespace kgrpo::evaluator
