// Text of unknown origin made fit for JSON and terminals.
#pragma once

#include <string>
#include <string_view>

namespace fulcrum::io {

/// The text with bytes that are not UTF-8 and control characters replaced by '?'.
std::string valid_utf8(std::string_view text);

}  // namespace fulcrum::io
