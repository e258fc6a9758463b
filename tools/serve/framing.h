// Whether a request's headers state one length. Used by http_server.cc.
#ifndef KGRPO_SERVE_FRAMING_H
#define KGRPO_SERVE_FRAMING_H

#include <httplib.h>

#include <string>

namespace kgrpo::serve {

// What makes the request's length ambiguous: "more than one Content-Length"; "" if nothing does.
std::string FramingFault(const httplib::Request& request);

// True for a text of letters, digits and `others`, of at least one character.
bool IsOfCharacters(const std::string& text, const char* others);

}  // namespace kgrpo::serve
#endif
