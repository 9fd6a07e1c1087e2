#include "calibrate/io/import/chrome_trace.h"

#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>

#include "model/errors.h"
#include "model/io/import/import_json.h"

namespace fulcrum::calibrate::io {
namespace {

using fulcrum::io::fail_json;
using fulcrum::io::ImportText;
using nlohmann::json;

/// Times outside are damage; within, sums of them stay inside 64 bits.
constexpr double kLatestMicroseconds = 4e15;
constexpr double kLongestMicroseconds = 1e12;
constexpr double kNanosecondsPerMicrosecond = 1e3;

enum class Field {
  kOther,
  kName,
  kCategory,
  kStart,
  kDuration,
  kProcess,
  kDevice,
  kStream,
  kLaunch,
  kGraph,
  kRank,
};

Field event_field(const std::string& key) {
  if (key == "name") return Field::kName;
  if (key == "cat") return Field::kCategory;
  if (key == "ts") return Field::kStart;
  if (key == "dur") return Field::kDuration;
  if (key == "pid") return Field::kProcess;
  return Field::kOther;
}

Field argument_field(const std::string& key) {
  if (key == "device") return Field::kDevice;
  if (key == "stream") return Field::kStream;
  if (key == "correlation") return Field::kLaunch;
  if (key == "graph node id") return Field::kGraph;
  return Field::kOther;
}

bool is_gpu_category(const std::string& category) {
  return category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset" ||
         category == "Kernel" || category == "Memcpy" || category == "Memset";
}

/// Parse events to activities; the interface's names are nlohmann's.
class TraceHandler final : public nlohmann::json_sax<json> {
 public:
  TraceHandler(KernelTrace& trace, const ImportText& text) : trace_(trace), text_(text) {}

  bool null() override { return number(0.0, false); }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t x) override { return number(static_cast<double>(x), true); }
  bool number_unsigned(number_unsigned_t x) override {
    return number(static_cast<double>(x), true);
  }
  bool number_float(number_float_t x, const string_t&) override { return number(x, true); }
  bool binary(binary_t&) override { return false; }

  bool string(string_t& x) override {
    switch (field_) {
      case Field::kName:
        event_.name.swap(x);
        break;
      case Field::kCategory:
        event_.gpu = is_gpu_category(x);
        break;
      case Field::kProcess:
        event_.process_text.swap(x);
        break;
      default:
        break;
    }
    field_ = Field::kOther;
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == event_depth_) {
      field_ = event_field(name);
      in_arguments_ = name == "args";
    } else if (in_arguments_ && depth_ == event_depth_ + 1) {
      field_ = argument_field(name);
    } else if (depth_ == 1 && event_depth_ == kNoEvent) {
      events_next_ = name == "traceEvents";
      in_distributed_ = name == "distributedInfo";
    } else if (in_distributed_ && depth_ == 2) {
      field_ = name == "rank" ? Field::kRank : Field::kOther;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    open();
    if (list_depth_ != kNoEvent && depth_ == list_depth_ + 1) {
      event_depth_ = depth_;
      event_.clear();
    }
    return true;
  }

  bool end_object() override {
    if (depth_ == event_depth_) {
      finish_event();
      event_depth_ = kNoEvent;
    }
    --depth_;
    in_arguments_ = in_arguments_ && depth_ > event_depth_;
    return true;
  }

  bool start_array(std::size_t) override {
    open();
    if (depth_ == 1 || (depth_ == 2 && events_next_)) list_depth_ = depth_;
    return true;
  }

  bool end_array() override {
    if (depth_ == list_depth_) list_depth_ = kNoEvent;
    --depth_;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    fail_json(text_.name(), text_.line(),
              error.id == kNumberOverflow ? "holds a number that no double can represent"
                                          : "is not valid JSON",
              "a whole trace; one cut off while it was written ends early");
  }

 private:
  static constexpr std::size_t kNoEvent = ~std::size_t{0};

  struct Event {
    std::string name;
    std::string process_text;
    double start_us = 0.0;
    double duration_us = 0.0;
    double process = -1.0;
    double device = -1.0;
    double stream = 0.0;
    double launch = 0.0;
    bool gpu = false;
    bool timed = false;
    bool in_graph = false;
    void clear() {
      name.clear();
      process_text.clear();
      start_us = duration_us = stream = launch = 0.0;
      process = device = -1.0;
      gpu = timed = in_graph = false;
    }
  };

  void open() {
    if (++depth_ > fulcrum::io::kMaxJsonDepth) {
      fail_json(text_.name(), text_.line(), "is nested too deeply for a trace");
    }
    field_ = Field::kOther;
  }

  bool number(double x, bool known) {
    const Field field = field_;
    field_ = Field::kOther;
    if (!known) return true;
    switch (field) {
      case Field::kStart:
        event_.start_us = x;
        event_.timed = true;
        break;
      case Field::kDuration:
        event_.duration_us = x;
        break;
      case Field::kProcess:
        event_.process = x;
        break;
      case Field::kDevice:
        event_.device = x;
        break;
      case Field::kStream:
        event_.stream = x;
        break;
      case Field::kLaunch:
        event_.launch = x;
        break;
      case Field::kGraph:
        event_.in_graph = x != 0.0;
        break;
      case Field::kRank:
        if (x >= 0.0 && x < 1e6) trace_.rank = static_cast<int>(x);
        break;
      default:
        break;
    }
    return true;
  }

  static std::uint32_t id_of(double x) {
    constexpr double kLargestId = 4294967295.0;
    return x >= 0.0 && x <= kLargestId ? static_cast<std::uint32_t>(x) : 0U;
  }

  std::uint16_t device_of() {
    const double device = event_.device >= 0.0 ? event_.device : event_.process;
    std::string label = "GPU " + std::to_string(id_of(device));
    if (!event_.process_text.empty()) label += " of " + event_.process_text.substr(0, 64);
    return trace_.device_index(label);
  }

  void finish_event() {
    if (!event_.gpu || !event_.timed) return;
    if (!(std::abs(event_.start_us) <= kLatestMicroseconds) ||
        !(event_.duration_us >= 0.0 && event_.duration_us <= kLongestMicroseconds)) {
      fail_json(text_.name(), text_.line(), "a kernel's ts or dur is out of range",
                "microseconds, dur from 0 to 1e12");
    }
    trace_.add({.start_ns = std::llround(event_.start_us * kNanosecondsPerMicrosecond),
                .duration_ns = std::llround(event_.duration_us * kNanosecondsPerMicrosecond),
                .name = trace_.name_index(event_.name),
                .stream = id_of(event_.stream),
                .launch = id_of(event_.launch),
                .device = device_of(),
                .in_graph = event_.in_graph});
  }

  KernelTrace& trace_;
  const ImportText& text_;
  Event event_;
  Field field_ = Field::kOther;
  std::size_t depth_ = 0;
  std::size_t list_depth_ = kNoEvent;   ///< depth inside the array of events
  std::size_t event_depth_ = kNoEvent;  ///< depth inside the current event
  bool events_next_ = false;
  bool in_arguments_ = false;
  bool in_distributed_ = false;
};

}  // namespace

KernelTrace read_chrome_trace(fulcrum::io::ByteSource& source) {
  KernelTrace trace;
  ImportText text(source);
  std::istream stream(&text);
  stream.exceptions(std::ios::badbit);  // let InputErrors of the source pass
  TraceHandler handler(trace, text);
  json::sax_parse(stream, &handler);
  if (trace.activities().empty()) {
    throw InputError(
        {source.name(), "", "holds no GPU activity", "a trace recorded with CUDA activities"});
  }
  return trace;
}

}  // namespace fulcrum::calibrate::io
