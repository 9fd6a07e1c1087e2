// Bytes of a file or of memory, decompressed when they are gzip (RFC 1952), within stated limits.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

namespace fulcrum::io {

/// What an import may cost before it is refused.
struct ImportLimits {
  /// Decompressed. A gzip member can grow 1032-fold, so 4 MB could ask for hours otherwise.
  std::uint64_t max_bytes = 64ULL << 30;
  /// Decompressed over compressed, judged from the first 64 MB on. Profiler traces reach about 40.
  double max_expansion = 250.0;
};

/// Sequential reader. Errors (unreadable, damaged gzip, beyond the limits) are InputErrors that
/// name the file.
class ByteSource : public std::streambuf {
 public:
  static ByteSource from_file(const std::string& path, const ImportLimits& limits = {});
  /// `bytes` must outlive the source; `name` stands for the path in messages.
  static ByteSource from_memory(std::string_view bytes, const std::string& name,
                                const ImportLimits& limits = {});
  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) = delete;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  ~ByteSource() override;

  const std::string& name() const { return name_; }
  /// Offset in the decompressed bytes of the next character.
  std::uint64_t position() const {
    return delivered_ - static_cast<std::uint64_t>(egptr() - gptr());
  }
  /// The first bytes, without consuming them (at most one buffer).
  std::string_view peek();
  /// Called about once per buffer with compressed bytes read and their total (0 when unknown).
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;

 protected:
  int_type underflow() override;

 private:
  ByteSource(std::string name, const ImportLimits& limits);
  void start_inflate_if_gzip();
  std::size_t read_raw(char* to, std::size_t size);
  std::size_t inflate_some(char* to, std::size_t size);
  [[noreturn]] void fail(const std::string& message, const std::string& allowed = {}) const;

  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct EndInflate {
    void operator()(z_stream* stream) const {
      inflateEnd(stream);
      delete stream;
    }
  };

  std::string name_;
  ImportLimits limits_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string_view memory_;
  std::size_t memory_at_ = 0;
  std::uint64_t raw_total_ = 0;
  std::uint64_t raw_read_ = 0;
  std::uint64_t delivered_ = 0;
  std::unique_ptr<z_stream, EndInflate> inflate_;
  bool member_open_ = false;  ///< inside a gzip member: the end of the file is an error
  bool started_ = false;
  std::vector<char> raw_;
  std::vector<char> buffer_;
};

}  // namespace fulcrum::io
