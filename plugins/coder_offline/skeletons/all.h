// The kinds of kernel that the offline coder writes. Each function returns the one instance of its kind.
#ifndef KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_ALL_H_
#define KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_ALL_H_

namespace kgrpo::coder_offline {

class Skeleton;

const Skeleton* MapSkeleton();        // out[i] = f(a[i], b[i], ...), in one stage or several
const Skeleton* BroadcastSkeleton();  // out[r][c] = f(x[r][c], a costly coefficient of c)
const Skeleton* ReductionSkeleton();  // one number from whole arrays
const Skeleton* RowsSkeleton();       // one number from each row
const Skeleton* SoftmaxSkeleton();    // rows normalised by their maximum and their sum of exponentials
const Skeleton* MomentsSkeleton();    // rows normalised by their mean and variance
const Skeleton* MatmulSkeleton();     // matrix products
const Skeleton* TransposeSkeleton();  // a matrix with its axes swapped
const Skeleton* ScanSkeleton();       // prefix sums of rows
const Skeleton* HistogramSkeleton();  // counts of bins
const Skeleton* StencilSkeleton();    // two-dimensional windows: convolution, pooling
const Skeleton* GatherSkeleton();     // rows of a table picked by index
const Skeleton* AttentionSkeleton();  // weighted means over keys, weights by softmax

}  // namespace kgrpo::coder_offline

#endif  // KGRPO_PLUGINS_CODER_OFFLINE_SKELETONS_ALL_H_
