// Finds data/ and the named files in it.
#pragma once

#include <string>
#include <string_view>

namespace fulcrum::io {

/// $FULCRUM_DATA_DIR, else share/fulcrum/data beside the running program's bin/, else data/ beside
/// the shared module that holds this library (a Python package), else the source tree's data/, else
/// the configured install prefix.
/// Throws InputError when none exists.
std::string data_dir();

/// Resolves what a user or a scenario names: a path to an existing file (also relative to
/// `base_dir`), or the stem of a file in data/<folder>/. Throws InputError listing the known names;
/// `file` and `pointer` say where the name stood.
std::string resolve(std::string_view folder, const std::string& name, const std::string& file,
                    const std::string& pointer, const std::string& base_dir = "");

}  // namespace fulcrum::io
