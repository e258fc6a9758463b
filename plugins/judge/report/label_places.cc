#include "judge/report/label_places.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kgrpo::evaluator {
namespace {

constexpr double kGap = 5;             // between a dot's rim and a label beside it
constexpr double kBeside = 21;         // from the dot's middle; a label further away gets a leader line
constexpr double kOnLine = 50;         // pixels of distance that weigh as much as lying on a line of the picture
constexpr double kAcrossLeader = 100;  // or as a leader that crosses another one
constexpr double kLineWidth = 4;       // kept clear of labels, of a line
constexpr double kSideStep = 24;       // between places that are tried
constexpr int kRows = 20, kColumns = 16;

void AddPieces(Spot from, Spot to, std::vector<Rectangle>* pieces) {
  const double half = kLineWidth / 2, length = std::hypot(to.x - from.x, to.y - from.y);
  for (double at = 0; at < length; at += kLineWidth) {
    const Spot on = Between(from, to, at / length);
    pieces->push_back({on.x - half, on.y - half, on.x + half, on.y + half});
  }
}

bool Overlaps(const std::vector<Rectangle>& taken, const Rectangle& area) {
  return std::any_of(taken.begin(), taken.end(), [&](const Rectangle& one) { return one.Overlaps(area); });
}

}  // namespace

Spot Rectangle::Nearest(Spot to) const { return {std::clamp(to.x, left, right), std::clamp(to.y, top, bottom)}; }

bool Rectangle::Crosses(Spot from, Spot to) const {
  // The part of the line that is within the rectangle, as a range of t from 0 to 1, cut by each pair of sides.
  double first = 0, last = 1;
  const auto cut = [&](double start, double step, double low, double high) {
    if (step == 0) {
      if (start <= low || start >= high) last = -1;
      return;
    }
    const double a = (low - start) / step, b = (high - start) / step;
    first = std::max(first, std::min(a, b));
    last = std::min(last, std::max(a, b));
  };
  cut(from.x, to.x - from.x, left, right);
  cut(from.y, to.y - from.y, top, bottom);
  return first < last;
}

void LabelPlaces::AddLine(Spot from, Spot to) { AddPieces(from, to, &lines_); }

bool LabelPlaces::Free(const Rectangle& area) const {
  return frame_.Holds(area) && !Overlaps(marks_, area) && !Overlaps(leaders_, area);
}

LabelPlaces::Place LabelPlaces::Take(Spot dot, double radius, double width, double height) {
  std::vector<double> lefts = {dot.x - width / 2};
  for (int step = 0; step < kColumns; ++step) {
    const double away = radius + kGap + step * kSideStep;
    lefts.push_back(dot.x + away);
    lefts.push_back(dot.x - away - width);
  }
  Place best;
  double least = std::numeric_limits<double>::infinity();
  for (int row = -kRows; row <= kRows; ++row) {
    const double middle = dot.y + (row == 0 ? 0 : row * height + std::copysign(kGap, row));
    for (const double left : lefts) {
      Place place;
      place.area = {left, middle - height / 2, left + width, middle + height / 2};
      place.to = place.area.Nearest(dot);
      const double distance = std::hypot(place.to.x - dot.x, place.to.y - dot.y);
      if (distance <= radius) continue;
      place.from = Between(dot, place.to, radius / distance);
      place.leader = distance > kBeside;
      const auto crossed = [&](const Rectangle& other) {
        // If the dot lies on this rectangle, every leader passes through it.
        return place.leader && other.Crosses(place.from, place.to) && !other.Overlaps({dot.x, dot.y, dot.x, dot.y});
      };
      if (!Free(place.area) || std::any_of(marks_.begin(), marks_.end(), crossed)) continue;
      const double cost = distance + (Overlaps(lines_, place.area) ? kOnLine : 0) +
                          (std::any_of(leaders_.begin(), leaders_.end(), crossed) ? kAcrossLeader : 0);
      if (cost >= least) continue;
      least = cost;
      best = place;
    }
  }
  if (least == std::numeric_limits<double>::infinity()) {
    const double left = dot.x + radius + kGap;
    best.area = {left, dot.y - height / 2, left + width, dot.y + height / 2};
  }
  AddMark(best.area);
  if (best.leader) AddPieces(best.from, best.to, &leaders_);
  return best;
}

}  // namespace kgrpo::evaluator
