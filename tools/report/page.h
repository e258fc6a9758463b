// The texts of the page, which the build takes from the files beside this one (tools/report/CMakeLists.txt).
#ifndef KGRPO_REPORT_PAGE_H
#define KGRPO_REPORT_PAGE_H

namespace kgrpo {

extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kChartsJs[];
extern const char kSectionsJs[];
extern const char kTrajectoriesJs[];
extern const char kPageJs[];

}  // namespace kgrpo

#endif  // KGRPO_REPORT_PAGE_H
