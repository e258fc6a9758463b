#include "report/roofline_picture.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <sstream>
#include <vector>

#include <kgrpo/support/number_text.h>
#include "report/escape.h"

namespace kgrpo {
namespace {

constexpr double kWidth = 760, kHeight = 470, kLeft = 86, kRight = 24, kTop = 22, kBottom = 62;
constexpr double kLineHeight = 15;  // of labels
constexpr const char *kInk = "#1f2933", *kGrid = "#e4e7eb", *kRoof = "#52606d", *kKernelColour = "#c2410c",
                     *kReferenceColour = "#2563a8", *kNeeded = "#15803d";

struct Spot {
  double x, y;
};
Spot Between(Spot from, Spot to, double t) {
  return {from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)};
}

struct Rectangle {
  double left, top, right, bottom;
  bool Overlaps(const Rectangle& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

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
    taken_.push_back({x - 5 - kLineHeight, kTop, x - 2, kTop + 84});
    for (double y = kTop; y < bottom; y += 6) taken_.push_back({x - 2, y, x + 2, y + 6});
  }

  void DrawSlopes() {
    const double x_low = std::pow(10.0, x_low_), x_high = std::pow(10.0, x_high_), y_low = std::pow(10.0, y_low_);
    const double peak = roofline_.peaks.front().rate;
    for (const Roofline::Slope& slope : roofline_.slopes) {
      const double from = std::max(x_low, y_low / slope.bytes_per_second),
                   to = std::min(x_high, peak / slope.bytes_per_second);
      if (from >= to) continue;
      const Spot low{X(from), Y(from * slope.bytes_per_second)}, high{X(to), Y(to * slope.bytes_per_second)};
      Line(low.x, low.y, high.x, high.y, Stroke(kRoof, slope.dashed ? 1 : 2, slope.dashed));
      // Points' names keep off the line.
      for (double t = 0; t < 1; t += 6 / (high.x - low.x)) {
        const Spot on = Between(low, high, t);
        taken_.push_back({on.x - 2, on.y - 2, on.x + 2, on.y + 2});
      }
      LabelSlope(slope, low, high);
    }
  }

  // Along the line, where no point is; else a quarter of the way up.
  void LabelSlope(const Roofline::Slope& slope, Spot low, Spot high) {
    const std::string name = slope.name + " " + Scaled(slope.bytes_per_second, "B/s");
    const double length = std::hypot(high.x - low.x, high.y - low.y), half = 3.3 * static_cast<double>(name.size());
    const Spot along{(high.x - low.x) / length, (high.y - low.y) / length};
    const double off = slope.below ? 12 : -11;  // of the letters' middle from the line, downwards
    std::vector<Spot> letters;
    Spot at{};
    for (const double t : {0.28, 0.4, 0.16, 0.52, 0.64, 0.28}) {
      at = Between(low, high, t);
      letters.clear();
      for (double s = -half; s <= half; s += 6)
        letters.push_back({at.x + s * along.x - off * along.y, at.y + s * along.y + off * along.x});
      const bool free = std::none_of(letters.begin(), letters.end(), [&](const Spot& letter) {
        return std::any_of(roofline_.points.begin(), roofline_.points.end(), [&](const Roofline::Point& point) {
          return std::hypot(X(point.intensity) - letter.x, Y(point.rate) - letter.y) < 16;
        });
      });
      if (free && letters.front().x > kLeft) break;
    }
    for (const Spot& letter : letters) taken_.push_back({letter.x - 6, letter.y - 6, letter.x + 6, letter.y + 6});
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
      Text(kWidth - kRight - 6, below ? y + kLineHeight : y - 6, one.name + " " + Scaled(one.rate, roofline_.rate_unit),
           std::string("text-anchor=\"end\" fill=\"") + kRoof + "\"");
      last = y;
      taken_.push_back({kWidth - kRight - 170, y - kLineHeight - 6, kWidth - kRight, y + 4});
    }
  }

  void DrawMark(const Roofline::Point& point) {
    const bool hollow = point.mark == Roofline::Mark::kKernelOtherLevel;
    const char* colour = ColourOf(point);
    svg_ << "<circle cx=\"" << X(point.intensity) << "\" cy=\"" << Y(point.rate) << "\" r=\""
         << (point.mark == Roofline::Mark::kReference ? 7 : 5) << "\" fill=\"" << (hollow ? "#ffffff" : colour) << "\" "
         << Stroke(colour, 2, false) << "/>\n";
    taken_.push_back({X(point.intensity) - 7, Y(point.rate) - 7, X(point.intensity) + 7, Y(point.rate) + 7});
  }

  static const char* ColourOf(const Roofline::Point& point) {
    return point.mark == Roofline::Mark::kReference ? kReferenceColour : kKernelColour;
  }

  // At the first place about the point where nothing else is.
  void LabelPoint(const Roofline::Point& point) {
    const double x = X(point.intensity), y = Y(point.rate), width = 6.6 * static_cast<double>(point.name.size());
    struct Place {
      double x, y;
      bool from_left;
    };
    std::vector<Place> places;
    for (int row = 0; row < 6; ++row) {
      for (const double side : {1.0, -1.0}) {
        const double at = y + 4 + side * (row == 0 ? 0 : 6 + row * kLineHeight);
        places.push_back({x + 12, at, true});
        places.push_back({x - 12, at, false});
      }
    }
    const Place* chosen = &places.front();
    Rectangle area{};
    for (const Place& place : places) {
      const double left = place.from_left ? place.x : place.x - width;
      area = {left, place.y - kLineHeight + 3, left + width, place.y + 3};
      const bool inside =
          area.left > kLeft && area.right < kWidth - kRight && area.top > kTop && area.bottom < kHeight - kBottom;
      if (inside &&
          std::none_of(taken_.begin(), taken_.end(), [&](const Rectangle& other) { return other.Overlaps(area); })) {
        chosen = &place;
        break;
      }
    }
    taken_.push_back(area);
    const std::string how =
        std::string("font-weight=\"600\" text-anchor=\"") + (chosen->from_left ? "start" : "end") + "\"";
    Text(chosen->x, chosen->y, point.name, how + " stroke=\"#ffffff\" stroke-width=\"4\" stroke-linejoin=\"round\"");
    Text(chosen->x, chosen->y, point.name, how + " fill=\"" + ColourOf(point) + "\"");
  }

  const Roofline& roofline_;
  double x_low_ = 0, x_high_ = 1, y_low_ = 0, y_high_ = 1;  // decades
  std::vector<Rectangle> taken_;                            // where labels and marks are
  std::ostringstream svg_;
};

}  // namespace

std::string RooflineSvg(const Roofline& roofline) {
  return Picture(roofline).Draw();
}

}  // namespace kgrpo
