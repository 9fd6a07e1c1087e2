// SHA-256 (FIPS 180-4) of a byte string, for provenance.
#pragma once

#include <string>
#include <string_view>

namespace fulcrum::calibrate::io {

/// Lower-case hex, 64 characters.
std::string sha256_hex(std::string_view bytes);

}  // namespace fulcrum::calibrate::io
