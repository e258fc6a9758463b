// Compressed parts of a page: deflated and written in base64, which the page's script decodes when a part is
// shown. Used by report/.
#ifndef KGRPO_REPORT_DEFLATE_H
#define KGRPO_REPORT_DEFLATE_H

#include <string>
#include <string_view>

namespace kgrpo {

// RFC 1950 (zlib's own form, which browsers call "deflate") in base64, without line breaks.
std::string DeflatedBase64(std::string_view bytes);

}  // namespace kgrpo

#endif  // KGRPO_REPORT_DEFLATE_H
