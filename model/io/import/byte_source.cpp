#include "model/io/import/byte_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "model/errors.h"

namespace fulcrum::io {
namespace {

constexpr std::size_t kBufferBytes = 1 << 18;
constexpr std::uint64_t kExpansionJudgedFrom = 64ULL << 20;
/// zlib's windowBits for "gzip header and trailer, largest window" (zlib.h, inflateInit2).
constexpr int kGzipWindowBits = 16 + MAX_WBITS;

}  // namespace

ByteSource::ByteSource(std::string name, const ImportLimits& limits)
    : name_(std::move(name)), limits_(limits) {}

// The base class is copied for its locale alone; the read area lies in `buffer_`, whose storage
// moves along.
ByteSource::ByteSource(ByteSource&& other) noexcept
    : std::streambuf(other),
      progress(std::move(other.progress)),
      name_(std::move(other.name_)),
      limits_(other.limits_),
      file_(std::move(other.file_)),
      memory_(other.memory_),
      memory_at_(other.memory_at_),
      raw_total_(other.raw_total_),
      raw_read_(other.raw_read_),
      delivered_(other.delivered_),
      inflate_(std::move(other.inflate_)),
      member_open_(other.member_open_),
      started_(other.started_),
      raw_(std::move(other.raw_)),
      buffer_(std::move(other.buffer_)) {}

ByteSource::~ByteSource() = default;

ByteSource ByteSource::from_file(const std::string& path, const ImportLimits& limits) {
  ByteSource source(path, limits);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) source.fail(std::strerror(errno), "a readable file");
  if (S_ISDIR(status.st_mode)) source.fail("is a folder", "a file");
  source.file_.reset(std::fopen(path.c_str(), "rb"));
  if (!source.file_) source.fail(std::strerror(errno), "a readable file");
  source.raw_.resize(kBufferBytes);
  source.buffer_.resize(kBufferBytes);
  source.raw_total_ = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  return source;
}

ByteSource ByteSource::from_memory(std::string_view bytes, const std::string& name,
                                   const ImportLimits& limits) {
  ByteSource source(name, limits);
  source.memory_ = bytes;
  const std::size_t enough = std::clamp<std::size_t>(bytes.size(), 4096, kBufferBytes);
  source.raw_.resize(enough);
  source.buffer_.resize(enough);
  source.raw_total_ = bytes.size();
  return source;
}

void ByteSource::fail(const std::string& message, const std::string& allowed) const {
  throw InputError({name_, "", message, allowed});
}

std::size_t ByteSource::read_raw(char* to, std::size_t size) {
  std::size_t num_read = 0;
  if (file_) {
    num_read = std::fread(to, 1, size, file_.get());
    if (num_read < size && std::ferror(file_.get()) != 0) fail("cannot be read to its end");
  } else {
    num_read = std::min(size, memory_.size() - memory_at_);
    std::copy_n(memory_.data() + memory_at_, num_read, to);
    memory_at_ += num_read;
  }
  raw_read_ += num_read;
  return num_read;
}

void ByteSource::start_inflate_if_gzip() {
  started_ = true;
  const std::size_t num_raw = read_raw(raw_.data(), raw_.size());
  const bool gzip = num_raw >= 2 && static_cast<unsigned char>(raw_[0]) == 0x1f &&
                    static_cast<unsigned char>(raw_[1]) == 0x8b;
  if (!gzip) {
    std::copy_n(raw_.data(), num_raw, buffer_.data());
    setg(buffer_.data(), buffer_.data(), buffer_.data() + num_raw);
    delivered_ = num_raw;
    return;
  }
  auto stream = std::make_unique<z_stream>();
  std::memset(stream.get(), 0, sizeof(z_stream));
  if (inflateInit2(stream.get(), kGzipWindowBits) != Z_OK) fail("zlib could not be started");
  inflate_.reset(stream.release());
  member_open_ = true;
  inflate_->next_in = reinterpret_cast<Bytef*>(raw_.data());
  inflate_->avail_in = static_cast<uInt>(num_raw);
}

std::size_t ByteSource::inflate_some(char* to, std::size_t size) {
  inflate_->next_out = reinterpret_cast<Bytef*>(to);
  inflate_->avail_out = static_cast<uInt>(size);
  while (inflate_->avail_out == size) {
    if (inflate_->avail_in == 0) {
      inflate_->next_in = reinterpret_cast<Bytef*>(raw_.data());
      inflate_->avail_in = static_cast<uInt>(read_raw(raw_.data(), raw_.size()));
      if (inflate_->avail_in == 0) {
        if (member_open_) fail("gzip data ends in the middle: the file is cut off");
        break;
      }
    }
    if (!member_open_) {  // another member follows: gzip files may be concatenated
      if (inflateReset(inflate_.get()) != Z_OK) fail("zlib could not be restarted");
      member_open_ = true;
    }
    const int status = inflate(inflate_.get(), Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      member_open_ = false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail(std::string("gzip data is damaged: ") +
           (inflate_->msg != nullptr ? inflate_->msg : "unknown error"));
    }
  }
  return size - inflate_->avail_out;
}

ByteSource::int_type ByteSource::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  if (!started_) {
    start_inflate_if_gzip();
    if (!inflate_) return gptr() < egptr() ? traits_type::to_int_type(*gptr()) : traits_type::eof();
  }
  const std::size_t num_bytes = inflate_ ? inflate_some(buffer_.data(), buffer_.size())
                                         : read_raw(buffer_.data(), buffer_.size());
  if (num_bytes == 0) return traits_type::eof();
  delivered_ += num_bytes;
  if (delivered_ > limits_.max_bytes) {
    fail("holds more than " + std::to_string(limits_.max_bytes >> 20) + " MiB",
         "less, or a higher --max-gib");
  }
  if (inflate_ && delivered_ > kExpansionJudgedFrom &&
      static_cast<double>(delivered_) > limits_.max_expansion * static_cast<double>(raw_read_)) {
    fail("grows more than " + std::to_string(static_cast<int>(limits_.max_expansion)) +
             "-fold when decompressed",
         "a trace as its tool wrote it; or decompress it yourself");
  }
  if (progress) progress(raw_read_, raw_total_);
  setg(buffer_.data(), buffer_.data(), buffer_.data() + num_bytes);
  return traits_type::to_int_type(*gptr());
}

std::string_view ByteSource::peek() {
  if (gptr() == egptr() && underflow() == traits_type::eof()) return {};
  return {gptr(), static_cast<std::size_t>(egptr() - gptr())};
}

}  // namespace fulcrum::io
