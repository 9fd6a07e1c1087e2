// Reads a DeepSeek-V4 config.json as published on Hugging Face.
#pragma once

#include <string>

#include "model/model_config.h"

namespace fulcrum::io {

/// Throws InputError for another architecture and for missing or contradictory fields, naming each.
/// Keys that do not bear on shapes or bytes are accepted and not read.
ModelConfig load_model(const std::string& path);

}  // namespace fulcrum::io
