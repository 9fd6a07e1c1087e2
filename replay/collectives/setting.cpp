#include "replay/collectives/setting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace fulcrum::replay::collectives {
namespace {

constexpr std::int64_t kAlignmentBytes = 16;
constexpr std::int64_t kMaxMessageBytes = std::int64_t{1} << 30;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  if (parts.empty()) parts.emplace_back();
  return parts;
}

/// Each part of `text` must be one of `allowed`; duplicates are dropped.
std::vector<std::string> choose(const char* option, const std::string& text,
                                std::span<const std::string_view> allowed) {
  std::vector<std::string> chosen;
  for (const std::string& part : split(text)) {
    if (std::find(allowed.begin(), allowed.end(), part) == allowed.end()) {
      std::string list;
      for (const std::string_view a : allowed) list += (list.empty() ? "" : ", ") + std::string(a);
      throw std::invalid_argument(std::string(option) + ": found '" + part + "', allowed: " + list);
    }
    if (std::find(chosen.begin(), chosen.end(), part) == chosen.end()) chosen.push_back(part);
  }
  return chosen;
}

std::string own_choice(const std::string& text) { return text == "default" ? "" : text; }

/// A whole number, or -1.
std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

std::vector<int> channel_counts(const std::string& text) {
  std::vector<int> counts;
  for (const std::string& part : split(text)) {
    const std::int64_t count = part == "default" ? 0 : number(part);
    constexpr std::int64_t kMaxChannels = 64;  // MAXCHANNELS of NCCL 2.28
    if (count < 0 || count > kMaxChannels || (count == 0 && part != "default")) {
      throw std::invalid_argument("--channels: found '" + part + "', allowed: default, 1..64");
    }
    counts.push_back(static_cast<int>(count));
  }
  return counts;
}

std::int64_t parse_size(const std::string& text) {
  std::string_view digits = text;
  std::int64_t unit = 1;
  if (!digits.empty() && (digits.back() == 'K' || digits.back() == 'M')) {
    unit = digits.back() == 'K' ? 1024 : 1024 * 1024;
    digits.remove_suffix(1);
  }
  const std::int64_t value = number(digits);
  if (value < 1 || value > kMaxMessageBytes / unit || value * unit < kAlignmentBytes) {
    throw std::invalid_argument("--sizes: found '" + text +
                                "', allowed: 16 to 1024M bytes, with K or M for 2^10 or 2^20");
  }
  return value * unit;
}

}  // namespace

const char* to_string(Operation operation) {
  return operation == Operation::kAllReduce ? "all_reduce" : "all_gather";
}

const char* to_string(Carrier carrier) {
  switch (carrier) {
    case Carrier::kNccl:
      return "nccl";
    case Carrier::kPeerOneShot:
      return "peer_one_shot";
    case Carrier::kPeerTwoShot:
      return "peer_two_shot";
  }
  return "unknown";
}

const char* to_string(LaunchKind kind) {
  switch (kind) {
    case LaunchKind::kGraph:
      return "graph";
    case LaunchKind::kEager:
      return "eager";
    case LaunchKind::kSingle:
      return "single";
  }
  return "unknown";
}

std::string Setting::name() const {
  std::string text = std::string(to_string(operation)) + " " + to_string(carrier);
  if (carrier != Carrier::kNccl) return text;
  text += " " + (protocol.empty() ? std::string("default") : protocol);
  if (!algorithm.empty()) text += " " + algorithm;
  if (channels > 0) text += " " + std::to_string(channels) + "ch";
  return text;
}

std::map<std::string, std::string> Setting::environment() const {
  std::map<std::string, std::string> variables;
  if (carrier != Carrier::kNccl) return variables;
  variables["NCCL_NVLS_ENABLE"] = "0";
  if (!protocol.empty()) variables["NCCL_PROTO"] = protocol;
  if (!algorithm.empty()) variables["NCCL_ALGO"] = algorithm;
  if (channels > 0) {
    variables["NCCL_MIN_NCHANNELS"] = std::to_string(channels);
    variables["NCCL_MAX_NCHANNELS"] = std::to_string(channels);
  }
  return variables;
}

std::vector<Setting> settings_of(const SettingLists& lists) {
  using Names = std::array<std::string_view, 4>;
  const auto operations = choose("--collectives", lists.operations,
                                 std::array<std::string_view, 2>{"all_reduce", "all_gather"});
  const auto carriers =
      choose("--carriers", lists.carriers,
             std::array<std::string_view, 3>{"nccl", "peer_one_shot", "peer_two_shot"});
  const auto protocols =
      choose("--protocols", lists.protocols, Names{"default", "LL", "LL128", "Simple"});
  const auto algorithms = choose("--algorithms", lists.algorithms,
                                 std::array<std::string_view, 3>{"default", "Ring", "Tree"});
  const std::vector<int> channels = channel_counts(lists.channels);
  std::vector<Setting> settings;
  const auto add = [&](Setting setting) {
    if (std::find(settings.begin(), settings.end(), setting) == settings.end()) {
      settings.push_back(std::move(setting));
    }
  };
  for (const std::string& operation_name : operations) {
    const Operation operation =
        operation_name == "all_reduce" ? Operation::kAllReduce : Operation::kAllGather;
    for (const std::string& carrier : carriers) {
      if (carrier != "nccl") {
        if (operation == Operation::kAllReduce) {
          add({.carrier =
                   carrier == "peer_one_shot" ? Carrier::kPeerOneShot : Carrier::kPeerTwoShot});
        }
        continue;
      }
      for (const std::string& algorithm : algorithms) {
        if (operation == Operation::kAllGather && algorithm == "Tree") continue;
        for (const int count : channels) {
          for (const std::string& protocol : protocols) {
            add({.operation = operation,
                 .protocol = own_choice(protocol),
                 .algorithm = own_choice(algorithm),
                 .channels = count});
          }
        }
      }
    }
  }
  if (settings.empty()) {
    throw std::invalid_argument(
        "--carriers: found '" + lists.carriers + "' with --collectives '" + lists.operations +
        "', allowed: a combination that exists (the peer carriers only all-reduce)");
  }
  return settings;
}

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const std::string& part : split(text)) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos) {
      sizes.push_back(parse_size(part));
      continue;
    }
    const std::int64_t last = parse_size(part.substr(colon + 1));
    for (std::int64_t size = parse_size(part.substr(0, colon)); size <= last; size *= 2) {
      sizes.push_back(size);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.empty()) {
    throw std::invalid_argument("--sizes: found '" + text + "', allowed: FROM:TO with FROM <= TO");
  }
  return sizes;
}

std::vector<int> parse_devices(const std::string& text) {
  std::vector<int> devices;
  for (const std::string& part : split(text)) {
    const std::int64_t device = number(part);
    constexpr std::int64_t kMaxDevice = 1023;
    if (device < 0 || device > kMaxDevice ||
        std::find(devices.begin(), devices.end(), device) != devices.end()) {
      throw std::invalid_argument("--gpus: found '" + part +
                                  "', allowed: different device numbers, comma separated");
    }
    devices.push_back(static_cast<int>(device));
  }
  return devices;
}

std::int64_t message_bytes(Operation operation, std::int64_t wanted_bytes, int num_ranks) {
  const std::int64_t parts = operation == Operation::kAllGather ? num_ranks : 1;
  const std::int64_t per_rank =
      std::max(kAlignmentBytes, wanted_bytes / parts / kAlignmentBytes * kAlignmentBytes);
  return per_rank * parts;
}

double link_bytes(Operation operation, std::int64_t bytes, int num_ranks) {
  const double share = (num_ranks - 1.0) / num_ranks;
  return (operation == Operation::kAllReduce ? 2.0 : 1.0) * share * static_cast<double>(bytes);
}

}  // namespace fulcrum::replay::collectives
