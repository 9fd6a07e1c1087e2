#include "model/io/import/import_json.h"

#include <algorithm>
#include <cctype>
#include <istream>

#include "model/errors.h"

namespace fulcrum::io {

using nlohmann::json;

void fail_json(const std::string& file, std::uint64_t line, const std::string& message,
               const std::string& allowed) {
  throw InputError({file, "line " + std::to_string(line), message, allowed});
}

ImportText::ImportText(ByteSource& source) : source_(source) {}

std::uint64_t ImportText::line() const {
  return 1 + lines_before_ + static_cast<std::uint64_t>(std::count(eback(), gptr(), '\n'));
}

void ImportText::end_word() {
  if (word_.empty()) return;
  const bool minus = word_.front() == '-';
  const std::string letters = minus ? word_.substr(1) : word_;
  const std::string& kept = letters == "NaN" || letters == "Infinity" ? (word_ = "null") : word_;
  out_.insert(out_.end(), kept.begin(), kept.end());
  word_.clear();
}

void ImportText::put(char c) {
  if (in_string_) {
    out_.push_back(c);
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return;
  }
  constexpr std::size_t kLongestWord = 16;
  const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
  if (letter && word_.size() < kLongestWord) {
    word_ += c;
    return;
  }
  end_word();
  if (c == '-') {
    word_ = "-";
    return;
  }
  in_string_ = c == '"';
  out_.push_back(c);
}

ImportText::int_type ImportText::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  lines_before_ += static_cast<std::uint64_t>(std::count(eback(), egptr(), '\n'));
  out_.clear();
  constexpr std::size_t kChunk = 1 << 16;
  constexpr int kByteOrderMark[] = {0xEF, 0xBB, 0xBF};
  if (at_start_) {
    at_start_ = false;
    const std::string_view head = source_.peek();
    if (head.size() >= 3 &&
        std::equal(head.begin(), head.begin() + 3, kByteOrderMark,
                   [](char a, int b) { return static_cast<unsigned char>(a) == b; })) {
      for (int i = 0; i < 3; ++i) source_.sbumpc();
    }
  }
  while (out_.size() < kChunk) {
    const int_type c = source_.sbumpc();
    if (c == traits_type::eof()) {
      end_word();
      break;
    }
    put(traits_type::to_char_type(c));
  }
  setg(out_.data(), out_.data(), out_.data() + out_.size());
  return out_.empty() ? traits_type::eof() : traits_type::to_int_type(out_.front());
}

namespace {

/// Builds the trimmed value from parse events. The interface's names are nlohmann's.
class TrimmedDom final : public nlohmann::json_sax<json> {
 public:
  TrimmedDom(json& root, const ImportText& text) : root_(root), text_(text) {}

  bool null() override { return value(nullptr); }
  bool boolean(bool x) override { return value(x); }
  bool number_integer(number_integer_t x) override { return value(x); }
  bool number_unsigned(number_unsigned_t x) override { return value(x); }
  bool number_float(number_float_t x, const string_t&) override { return value(x); }
  bool string(string_t& x) override {
    cut(x);
    return value(std::move(x));
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (skipped_depth_ > 0) return true;
    cut(name);
    json& object = *stack_.back();
    if (object.contains(name)) {
      fail_json(text_.name(), text_.line(), "key \"" + name + "\" appears twice in one object");
    }
    slot_ = &object[name];
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    fail_json(text_.name(), text_.line(),
              error.id == kNumberOverflow ? "holds a number that no double can represent"
                                          : "is not valid JSON",
              error.id == kNumberOverflow ? "" : "JSON in UTF-8, whole");
  }

 private:
  static void cut(std::string& text) {
    if (text.size() <= kMaxJsonText) return;
    std::size_t end = kMaxJsonText;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    text.resize(end);
  }

  void count() {
    if (++num_values_ > kMaxJsonValues) {
      fail_json(text_.name(), text_.line(),
                "holds more than " + std::to_string(kMaxJsonValues) + " values");
    }
  }

  template <class Value>
  bool value(Value&& x) {
    if (skipped_depth_ > 0) return true;
    if (json* place = next(true)) {
      count();
      *place = std::forward<Value>(x);
    }
    return true;
  }

  /// Where the next value goes; null where it is dropped.
  json* next(bool scalar) {
    if (stack_.empty()) return &root_;
    json& parent = *stack_.back();
    if (parent.is_object()) return slot_;
    if (scalar && parent.size() >= kMaxScalarElements) return nullptr;
    parent.push_back(nullptr);
    return &parent.back();
  }

  bool open(json container) {
    if (++depth_ > kMaxJsonDepth) {
      fail_json(text_.name(), text_.line(),
                "is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    const bool array_in_array =
        container.is_array() && !stack_.empty() && stack_.back()->is_array();
    if (skipped_depth_ > 0 || array_in_array) {
      ++skipped_depth_;
      return true;
    }
    count();
    json* place = next(false);
    *place = std::move(container);
    stack_.push_back(place);
    return true;
  }

  bool close() {
    --depth_;
    if (skipped_depth_ > 0) {
      --skipped_depth_;
    } else {
      stack_.pop_back();
    }
    return true;
  }

  json& root_;
  const ImportText& text_;
  std::vector<json*> stack_;
  json* slot_ = nullptr;
  std::size_t depth_ = 0;
  std::size_t skipped_depth_ = 0;
  std::size_t num_values_ = 0;
};

}  // namespace

std::vector<ImportedDocument> parse_import_json(ByteSource& source) {
  ImportText text(source);
  std::istream stream(&text);
  stream.exceptions(std::ios::badbit);  // let InputErrors of the source pass
  std::vector<ImportedDocument> documents;
  for (;;) {
    int next = text.sgetc();
    while (next != std::char_traits<char>::eof() && std::isspace(next) != 0) next = text.snextc();
    if (next == std::char_traits<char>::eof()) break;
    ImportedDocument document{text.line(), nullptr};
    TrimmedDom handler(document.value, text);
    json::sax_parse(stream, &handler, json::input_format_t::json, false);
    documents.push_back(std::move(document));
  }
  if (documents.empty()) fail_json(source.name(), 1, "is empty", "at least one JSON value");
  return documents;
}

}  // namespace fulcrum::io
