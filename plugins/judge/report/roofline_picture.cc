#include "judge/report/roofline_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include <kgrpo/support/number_text.h>
#include "judge/report/escape.h"
#include "judge/report/label_places.h"

namespace kgrpo::evaluator {
namespace {

constexpr double kWidth = 760, kHeight = 470, kLeft = 86, kRight = 24, kTop = 22, kBottom = 62;
constexpr double kLineHeight = 15;  // of labels
constexpr double kDotRadius = 7;    // of the largest, with its rim
constexpr const char *kInk = "#1f2933", *kGrid = "#e4e7eb", *kRoof = "#52606d", *kKernelColour = "#c2410c",
                     *kReferenceColour = "#2563a8", *kNeeded = "#15803d";

class Picture {
 public:
  explicit Picture(const Roofline& roofline) : roofline_(roofline) { ChooseRanges(); }

  std::string Draw() {
    svg_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << kWidth << " " << kHeight
         << "\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\" fill=\"" << kInk << "\">\n";
    svg_ << "<title>Roofline: " << EscapeHtml(roofline_.work) << " a second over those a byte moved</title>\n";
    DrawAxes();
    DrawNeeded();
    DrawSlopes();
    DrawPeaks();
    for (const Roofline::Point& point : roofline_.points) DrawMark(point);
    // The kernel's first: they keep the best places.
    for (auto point = roofline_.points.rbegin(); point != roofline_.points.rend(); ++point) LabelPoint(*point);
    // A slope's name finds room somewhere along it.
    for (const Roofline::Slope& slope : roofline_.slopes) LabelSlope(slope);
    svg_ << "</svg>\n";
    return svg_.str();
  }

 private:
  double X(double intensity) const {
    return kLeft + (std::log10(intensity) - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double Y(double rate) const {
    return kHeight - kBottom - (std::log10(rate) - y_low_) / (y_high_ - y_low_) * (kHeight - kTop - kBottom);
  }

  // Two decades or more that hold every point and the ridges.
  void ChooseRanges() {
    const double peak = roofline_.peaks.front().rate, slowest = roofline_.slopes.back().bytes_per_second;
    double left = roofline_.peaks.back().rate / slowest, right = peak / slowest, low = peak, high = peak;
    for (const Roofline::Point& point : roofline_.points) {
      left = std::min(left, point.intensity);
      right = std::max(right, point.intensity);
      low = std::min(low, point.rate);
      high = std::max(high, point.rate);
    }
    if (roofline_.needed_intensity > 0) {
      left = std::min(left, roofline_.needed_intensity);
      right = std::max(right, roofline_.needed_intensity);
    }
    x_low_ = std::log10(left / 3);
    x_high_ = std::max(std::log10(right * 3), x_low_ + 2);
    y_low_ = std::log10(low / 4);
    y_high_ = std::max(std::log10(high * 3), y_low_ + 2);
  }

  Spot SpotOf(const Roofline::Point& point) const { return {X(point.intensity), Y(point.rate)}; }
  static double WidthOf(const std::string& name) { return 6.6 * static_cast<double>(name.size()); }

  void Text(double x, double y, const std::string& text, const std::string& attributes) {
    svg_ << "<text x=\"" << x << "\" y=\"" << y << "\" " << attributes << ">" << EscapeHtml(text) << "</text>\n";
  }
  void Line(double x1, double y1, double x2, double y2, const std::string& attributes) {
    svg_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" " << attributes
         << "/>\n";
  }
  static std::string Stroke(const char* colour, double width, bool dashed) {
    std::ostringstream text;
    text << "stroke=\"" << colour << "\" stroke-width=\"" << width << "\""
         << (dashed ? " stroke-dasharray=\"6 4\"" : "");
    return text.str();
  }

  // Those to draw: all, or every second or third of many.
  static std::vector<int> Decades(double low, double high) {
    const int step = static_cast<int>((high - low) / 9) + 1;
    std::vector<int> decades;
    for (auto decade = static_cast<int>(std::ceil(low)); decade <= high; decade += step) decades.push_back(decade);
    return decades;
  }

  void DrawAxes() {
    const double bottom = kHeight - kBottom, right = kWidth - kRight;
    for (const int decade : Decades(x_low_, x_high_)) {
      const double value = std::pow(10.0, decade), x = X(value);
      Line(x, kTop, x, bottom, Stroke(kGrid, 1, false));
      char text[32];
      std::snprintf(text, sizeof text, "%g", value);
      Text(x, bottom + 18, text, "text-anchor=\"middle\"");
    }
    for (const int decade : Decades(y_low_, y_high_)) {
      const double value = std::pow(10.0, decade), y = Y(value);
      Line(kLeft, y, right, y, Stroke(kGrid, 1, false));
      Text(kLeft - 8, y + 4, Scaled(value, ""), "text-anchor=\"end\"");
    }
    svg_ << "<rect x=\"" << kLeft << "\" y=\"" << kTop << "\" width=\"" << right - kLeft << "\" height=\""
         << bottom - kTop << "\" fill=\"none\" " << Stroke("#9aa5b1", 1, false) << "/>\n";
    Text((kLeft + right) / 2, kHeight - 16, roofline_.work + " a byte moved [" + roofline_.intensity_unit + "]",
         "text-anchor=\"middle\"");
    std::ostringstream turned;
    turned << "text-anchor=\"middle\" transform=\"rotate(-90 20 " << (kTop + bottom) / 2 << ")\"";
    Text(20, (kTop + bottom) / 2, roofline_.work + " a second [" + roofline_.rate_unit + "]", turned.str());
  }

  void DrawNeeded() {
    if (roofline_.needed_intensity <= 0) return;
    const double x = X(roofline_.needed_intensity), bottom = kHeight - kBottom;
    Line(x, kTop, x, bottom, Stroke(kNeeded, 1.5, true));
    std::ostringstream turned;
    turned << "fill=\"" << kNeeded << "\" text-anchor=\"end\" transform=\"rotate(-90 " << x - 5 << " " << kTop + 8
           << ")\"";
    Text(x - 5, kTop + 8, "least traffic", turned.str());
    places_.AddMark({x - 5 - kLineHeight, kTop, x - 2, kTop + 84});
    places_.AddLine({x, kTop}, {x, bottom});
  }

  // The points at which a slope enters the picture and meets the peak; nothing if they lie outside the picture.
  std::optional<std::pair<Spot, Spot>> EndsOf(const Roofline::Slope& slope) const {
    const double rate = slope.bytes_per_second, peak = roofline_.peaks.front().rate;
    const double from = std::max(std::pow(10.0, x_low_), std::pow(10.0, y_low_) / rate),
                 to = std::min(std::pow(10.0, x_high_), peak / rate);
    if (from >= to) return std::nullopt;
    return std::pair{Spot{X(from), Y(from * rate)}, Spot{X(to), Y(to * rate)}};
  }

  void DrawSlopes() {
    for (const Roofline::Slope& slope : roofline_.slopes) {
      const auto ends = EndsOf(slope);
      if (!ends) continue;
      const auto [low, high] = *ends;
      Line(low.x, low.y, high.x, high.y, Stroke(kRoof, slope.dashed ? 1 : 2, slope.dashed));
      places_.AddLine(low, high);
    }
  }

  // Along the line, at the free place nearest to a quarter of the way up.
  void LabelSlope(const Roofline::Slope& slope) {
    const auto ends = EndsOf(slope);
    if (!ends) return;
    const auto [low, high] = *ends;
    const std::string name = slope.name + " " + Scaled(slope.bytes_per_second, "B/s");
    const double length = std::hypot(high.x - low.x, high.y - low.y), half = WidthOf(name) / 2;
    const Spot along{(high.x - low.x) / length, (high.y - low.y) / length};
    const double off = slope.below ? 12 : -11;  // of the letters' middle from the line, downwards
    const auto letters_at = [&](Spot at) {
      std::vector<Rectangle> letters;
      for (double s = -half; s <= half; s += 6) {
        const Spot letter{at.x + s * along.x - off * along.y, at.y + s * along.y + off * along.x};
        letters.push_back({letter.x - 6, letter.y - 6, letter.x + 6, letter.y + 6});
      }
      return letters;
    };
    constexpr double kBest = 0.28, kStep = 0.03;
    Spot at = Between(low, high, kBest);
    for (int step = 0; step <= 2 / kStep; ++step) {
      const double t = kBest + (step % 2 == 0 ? -kStep : kStep) * std::ceil(step / 2.0);
      const Spot tried = Between(low, high, t);
      const std::vector<Rectangle> letters = letters_at(tried);
      if (t < 0 || t > 1 ||
          !std::all_of(letters.begin(), letters.end(), [&](const Rectangle& one) { return places_.Free(one); }))
        continue;
      at = tried;
      break;
    }
    for (const Rectangle& letter : letters_at(at)) places_.AddMark(letter);
    std::ostringstream turned;
    turned << "text-anchor=\"middle\" fill=\"" << kRoof << "\" transform=\"rotate("
           << std::atan2(along.y, along.x) * 180 / std::numbers::pi << " " << at.x << " " << at.y << ")\" dy=\""
           << (slope.below ? 16 : -7) << "\"";
    Text(at.x, at.y, name, turned.str());
  }

  void DrawPeaks() {
    const double x_low = std::pow(10.0, x_low_), x_high = std::pow(10.0, x_high_);
    double last = 0;
    for (const Roofline::Peak& one : roofline_.peaks) {
      const double from = std::max(x_low, one.rate / roofline_.slopes.front().bytes_per_second), y = Y(one.rate);
      if (from < x_high) Line(X(from), y, X(x_high), y, Stroke(kRoof, one.dashed ? 1 : 2, one.dashed));
      // Two peaks that are nearly one: the lower one's name goes below.
      const bool below = last > 0 && y - last < kLineHeight + 6;
      const std::string name = one.name + " " + Scaled(one.rate, roofline_.rate_unit);
      const double right = kWidth - kRight - 6, baseline = below ? y + kLineHeight : y - 6;
      Text(right, baseline, name, std::string("text-anchor=\"end\" fill=\"") + kRoof + "\"");
      last = y;
      places_.AddMark({right - WidthOf(name), baseline - kLineHeight + 3, right, baseline + 3});
      places_.AddLine({X(from), y}, {X(x_high), y});
    }
  }

  void DrawMark(const Roofline::Point& point) {
    const bool hollow = point.mark == Roofline::Mark::kKernelOtherLevel;
    const char* colour = ColourOf(point);
    svg_ << "<circle cx=\"" << X(point.intensity) << "\" cy=\"" << Y(point.rate) << "\" r=\""
         << (point.mark == Roofline::Mark::kReference ? 7 : 5) << "\" fill=\"" << (hollow ? "#ffffff" : colour) << "\" "
         << Stroke(colour, 2, false) << "/>\n";
    const Spot dot = SpotOf(point);
    places_.AddMark({dot.x - kDotRadius, dot.y - kDotRadius, dot.x + kDotRadius, dot.y + kDotRadius});
  }

  static const char* ColourOf(const Roofline::Point& point) {
    return point.mark == Roofline::Mark::kReference ? kReferenceColour : kKernelColour;
  }

  void LabelPoint(const Roofline::Point& point) {
    const Spot dot = SpotOf(point);
    const LabelPlaces::Place place = places_.Take(dot, kDotRadius, WidthOf(point.name), kLineHeight);
    if (place.leader) Line(place.from.x, place.from.y, place.to.x, place.to.y, Stroke(ColourOf(point), 1, false));
    // Held at the side of its dot, since letters may be wider or narrower than WidthOf says.
    const bool left_of = place.area.right < dot.x;
    const double x = left_of ? place.area.right : place.area.left, baseline = place.area.bottom - 3;
    const std::string how = std::string("font-weight=\"600\" text-anchor=\"") + (left_of ? "end" : "start") + "\"";
    Text(x, baseline, point.name, how + " stroke=\"#ffffff\" stroke-width=\"4\" stroke-linejoin=\"round\"");
    Text(x, baseline, point.name, how + " fill=\"" + ColourOf(point) + "\"");
  }

  const Roofline& roofline_;
  double x_low_ = 0, x_high_ = 1, y_low_ = 0, y_high_ = 1;  // decades
  LabelPlaces places_{{kLeft, kTop, kWidth - kRight, kHeight - kBottom}};
  std::ostringstream svg_;
};

}  // namespace

std::string RooflineSvg(const Roofline& roofline) { return Picture(roofline).Draw(); }

}  // namespace kgrpo::evaluator
