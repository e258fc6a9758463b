// judge/report/label_places.h, in report/roofline_picture.h's pictures: every dot's name lies clear of other
// text and dots, beside its dot or at the end of a leader line.
#include <numbers>

#include "judge/report/label_places.h"
#include "judge/report/roofline_picture.h"
#include "test.h"

namespace kgrpo::evaluator {
namespace {

struct Element {
  std::string tag, attributes, text;
  double Number(const std::string& name) const {
    std::smatch match;
    EXPECT_TRUE(std::regex_search(attributes, match, std::regex("(?:^| )" + name + "=\"([-0-9.e+]+)\""))) << attributes;
    return match.empty() ? 0 : std::stod(match[1]);
  }
  bool Has(const std::string& text_of) const { return attributes.find(text_of) != std::string::npos; }
};

struct Picture {
  std::vector<Rectangle> dots;
  std::vector<Rectangle> other_text;        // of lines
  std::map<std::string, Rectangle> labels;  // of dots, by name
  struct Leader {
    Spot from, to;
  };
  std::vector<Leader> leaders;
};

// The letters of a turned text, each with room about it.
std::vector<Rectangle> Letters(const Element& text) {
  std::smatch turn;
  EXPECT_TRUE(std::regex_search(text.attributes, turn, std::regex("rotate\\(([-0-9.e+]+) ")));
  const double angle = std::stod(turn[1]) * std::numbers::pi / 180, x = text.Number("x"), y = text.Number("y"),
               down = text.Has("dy=") ? text.Number("dy") - 4 : -4, width = 6 * static_cast<double>(text.text.size()),
               from = text.Has("\"end\"") ? -width : -width / 2;
  std::vector<Rectangle> letters;
  for (double along = from; along <= from + width; along += 6) {
    const Spot at{x + along * std::cos(angle) - down * std::sin(angle),
                  y + along * std::sin(angle) + down * std::cos(angle)};
    letters.push_back({at.x - 4, at.y - 4, at.x + 4, at.y + 4});
  }
  return letters;
}

Picture Read(const Roofline& roofline) {
  const std::string svg = RooflineSvg(roofline);
  const std::regex element("<(circle|line|text) ([^>]*?)/?>([^<\n]*)");
  Picture picture;
  for (std::sregex_iterator at(svg.begin(), svg.end(), element), end; at != end; ++at) {
    const Element one{(*at)[1], (*at)[2], (*at)[3]};
    if (one.tag == "circle") {
      const double x = one.Number("cx"), y = one.Number("cy"), r = one.Number("r");
      picture.dots.push_back({x - r, y - r, x + r, y + r});
    } else if (one.tag == "line" && (one.Has("#c2410c") || one.Has("#2563a8"))) {
      picture.leaders.push_back({{one.Number("x1"), one.Number("y1")}, {one.Number("x2"), one.Number("y2")}});
    } else if (one.tag == "text" && one.Has("font-weight")) {
      const double x = one.Number("x"), y = one.Number("y"), width = 6 * static_cast<double>(one.text.size());
      const double left = one.Has("\"end\"") ? x - width : x;
      picture.labels[one.text] = {left, y - 10, left + width, y + 2};
    } else if (one.tag == "text" && one.Has("fill=")) {  // the axes' texts have none, and are outside the frame
      if (one.Has("rotate")) {
        for (const Rectangle& letter : Letters(one)) picture.other_text.push_back(letter);
      } else {
        const double x = one.Number("x"), y = one.Number("y");
        picture.other_text.push_back({x - 6 * static_cast<double>(one.text.size()), y - 10, x, y + 2});
      }
    }
  }
  return picture;
}

double Distance(const Rectangle& area, Spot to) {
  const Spot nearest = area.Nearest(to);
  return std::hypot(nearest.x - to.x, nearest.y - to.y);
}

Spot Middle(const Rectangle& area) { return {(area.left + area.right) / 2, (area.top + area.bottom) / 2}; }

// Dots by their names; each label is clear, and a label away from its dot has a leader of its own.
void ExpectClear(const Roofline& roofline, const Picture& picture) {
  ASSERT_EQ(picture.labels.size(), roofline.points.size());
  ASSERT_EQ(picture.dots.size(), roofline.points.size());
  size_t away = 0;
  for (size_t i = 0; i < roofline.points.size(); ++i) {
    const std::string& name = roofline.points[i].name;
    const Rectangle& label = picture.labels.at(name);
    for (const auto& [other, area] : picture.labels)
      EXPECT_FALSE(other != name && area.Overlaps(label)) << name << " over " << other;
    for (const Rectangle& dot : picture.dots) EXPECT_FALSE(dot.Overlaps(label)) << name << " over a dot";
    for (const Rectangle& text : picture.other_text)
      EXPECT_FALSE(text.Overlaps(label)) << name << " over a line's name";
    const Spot dot = Middle(picture.dots[i]);
    if (Distance(label, dot) < 24) continue;
    ++away;
    const auto leader = std::find_if(picture.leaders.begin(), picture.leaders.end(), [&](const Picture::Leader& one) {
      return std::hypot(one.from.x - dot.x, one.from.y - dot.y) < 8 && Distance(label, one.to) < 4;
    });
    ASSERT_NE(leader, picture.leaders.end()) << name << " is away from its dot, without a leader";
    for (const auto& [other, area] : picture.labels)
      EXPECT_FALSE(other != name && area.Crosses(leader->from, leader->to)) << name << "'s leader through " << other;
    for (const Rectangle& other : picture.dots) {
      const bool touches = other.Overlaps(picture.dots[i]);  // or is the same one
      EXPECT_FALSE(!touches && other.Crosses(leader->from, leader->to)) << name << "'s leader through a dot";
    }
    for (const Rectangle& text : picture.other_text)
      EXPECT_FALSE(text.Crosses(leader->from, leader->to)) << name << "'s leader through a line's name";
  }
  EXPECT_EQ(picture.leaders.size(), away) << "leaders that no label needs";
}

Roofline Device() {
  Roofline roofline;
  roofline.slopes = {
      {"L2", 8e12, false, false}, {"DRAM, data sheet", 4e12, false, true}, {"DRAM, reached", 3e12, true}};
  roofline.peaks = {{"tensor", 6e14, true}, {"fp32", 6e13, false}};
  roofline.needed_intensity = 10;
  return roofline;
}

TEST(RooflineLabelsTest, BesideTheDotWhereThereIsRoom) {
  Roofline roofline = Device();
  roofline.points = {{"reference", 2, 1e12, Roofline::Mark::kReference}, {"kernel", 60, 1e13, Roofline::Mark::kKernel}};
  const Picture picture = Read(roofline);
  ExpectClear(roofline, picture);
  EXPECT_TRUE(picture.leaders.empty());
}

// Dots side by side where the slopes, their names and the line of the least traffic meet.
TEST(RooflineLabelsTest, ClearAmongManyDots) {
  Roofline roofline = Device();
  for (int i = 0; i < 8; ++i) {
    roofline.points.push_back({"kernel " + std::to_string(i), 7.0 + 2 * (i % 4), (2 + (i / 4)) * 1e13,
                               i == 0 ? Roofline::Mark::kReference : Roofline::Mark::kKernel});
  }
  const Picture picture = Read(roofline);
  ExpectClear(roofline, picture);
  EXPECT_GE(picture.leaders.size(), 3u);
}

// Wherever a report's three dots lie.
TEST(RooflineLabelsTest, ClearWhereverTheDotsLie) {
  size_t leaders = 0;
  for (const double apart : {1.001, 1.05, 1.3}) {
    for (double intensity = 0.5; intensity < 200; intensity *= 1.7) {
      for (double rate = 3e11; rate < 6e14; rate *= 1.9) {
        Roofline roofline = Device();
        roofline.points = {{"reference", intensity, rate / apart, Roofline::Mark::kReference},
                           {"kernel, by L2 traffic", intensity / apart, rate, Roofline::Mark::kKernelOtherLevel},
                           {"kernel, by DRAM traffic", apart * intensity, rate, Roofline::Mark::kKernel}};
        const Picture picture = Read(roofline);
        SCOPED_TRACE(testing::Message() << apart << " " << intensity << " " << rate);
        ExpectClear(roofline, picture);
        leaders += picture.leaders.size();
      }
    }
  }
  EXPECT_GT(leaders, 0u);
}

TEST(RectangleTest, IsCrossedByLinesThroughIt) {
  const Rectangle area{0, 0, 10, 4};
  EXPECT_TRUE(area.Crosses({-5, 2}, {15, 2}));
  EXPECT_TRUE(area.Crosses({-1, -1}, {3, 3}));
  EXPECT_TRUE(area.Crosses({5, 2}, {50, 60})) << "from within";
  EXPECT_FALSE(area.Crosses({-5, 2}, {-1, 2})) << "ends before it";
  EXPECT_FALSE(area.Crosses({-5, 5}, {15, 5})) << "beside it";
  EXPECT_FALSE(area.Crosses({12, -5}, {12, 20}));
  EXPECT_FALSE(area.Crosses({5, 10}, {5, 4})) << "ends at its edge";
}

}  // namespace
}  // namespace kgrpo::evaluator
