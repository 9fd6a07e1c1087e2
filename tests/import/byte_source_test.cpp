// Compressed input within limits: what gzip tools write, what damage does, what a bomb would do.
#include "model/io/import/byte_source.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <istream>
#include <iterator>
#include <string>

#include "model/errors.h"

namespace fulcrum::io {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string read_all(const std::string& bytes, const ImportLimits& limits = {}) {
  ByteSource source = ByteSource::from_memory(bytes, "memory", limits);
  std::istream stream(&source);
  stream.exceptions(std::ios::badbit);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string sample_text() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919) + ",";
  return text;
}

TEST(ByteSource, PassesPlainBytesAndDecompressesGzip) {
  const std::string text = sample_text();
  EXPECT_EQ(read_all(text), text);
  EXPECT_EQ(read_all(gzip(text)), text);
  EXPECT_EQ(read_all(""), "");
  EXPECT_EQ(read_all(gzip("")), "");
}

TEST(ByteSource, ReadsConcatenatedMembers) {
  EXPECT_EQ(read_all(gzip("one ") + gzip("two")), "one two");
}

TEST(ByteSource, RefusesTruncatedAndDamagedGzip) {
  const std::string good = gzip(sample_text());
  for (const std::size_t size :
       {std::size_t{2}, std::size_t{11}, good.size() / 2, good.size() - 1}) {
    EXPECT_THROW(read_all(good.substr(0, size)), InputError) << size;
  }
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 0x55);
  EXPECT_THROW(read_all(damaged), InputError);
}

TEST(ByteSource, RefusesABombAfterBoundedWork) {
  const std::string bomb = gzip(std::string(80 << 20, ' '));  // 80 MB in 80 kB
  try {
    read_all(bomb);
    FAIL() << "the bomb was read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("250-fold"), std::string::npos) << error.what();
  }
}

TEST(ByteSource, RefusesMoreThanTheLimit) {
  EXPECT_THROW(read_all(std::string(1 << 20, 'x'), {.max_bytes = 1 << 19}), InputError);
}

TEST(ByteSource, NamesWhatCannotBeRead) {
  EXPECT_THROW(ByteSource::from_file("no/such/file"), InputError);
  EXPECT_THROW(ByteSource::from_file("/"), InputError);
}

}  // namespace
}  // namespace fulcrum::io
