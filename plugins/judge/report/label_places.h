// Chooses positions for the labels of a picture's dots: beside the dot, or apart from it at the end of a leader line.
// Used by roofline_picture.cc.
#pragma once

#include <vector>

namespace kgrpo::evaluator {

// In pixels; y grows downwards.
struct Spot {
  double x = 0, y = 0;
};
inline Spot Between(Spot from, Spot to, double t) {
  return {from.x + t * (to.x - from.x), from.y + t * (to.y - from.y)};
}

struct Rectangle {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool Overlaps(const Rectangle& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool Holds(const Rectangle& other) const {
    return left <= other.left && other.right <= right && top <= other.top && other.bottom <= bottom;
  }
  Spot Nearest(Spot to) const;
  bool Crosses(Spot from, Spot to) const;  // whether the line between them passes through
};

class LabelPlaces {
 public:
  explicit LabelPlaces(Rectangle frame) : frame_(frame) {}

  // A line of the picture: labels keep off it where they can, leader lines may cross it.
  void AddLine(Spot from, Spot to);
  // Text or a dot: neither labels nor leader lines lie on it.
  void AddMark(Rectangle area) { marks_.push_back(area); }

  bool Free(const Rectangle& area) const;  // of marks and leader lines, within the frame

  struct Place {
    Rectangle area;       // of the label
    bool leader = false;  // a line from `from`, at the dot's rim, to `to`, on the label's edge
    Spot from, to;
  };
  // The nearest free place for a label of that size, which is a mark from then on, as is its leader. Where nothing is
  // free: beside the dot.
  Place Take(Spot dot, double radius, double width, double height);

 private:
  const Rectangle frame_;
  std::vector<Rectangle> lines_, marks_, leaders_;  // lines in small pieces
};

}  // namespace kgrpo::evaluator
