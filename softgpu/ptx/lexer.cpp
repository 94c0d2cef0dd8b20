// SPDX-License-Identifier: Apache-2.0
#include "softgpu/ptx/lexer.h"

#include <fmt/core.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

namespace remora::softgpu {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word_start(char c) { return is_letter(c) || c == '_' || c == '$' || c == '%'; }
bool is_word_part(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

}  // namespace

Error syntax_error(const Token& found, std::string_view expected) {
  const std::string what = found.kind == Token::Kind::end
                               ? std::string("the end of the text")
                               : fmt::format("\"{}\"", found.text.substr(0, 60));
  return Error{ErrorKind::invalid_input, 0,
               fmt::format("PTX line {} has {} where {} is expected.", found.line, what, expected)};
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      const std::size_t end = text_.find('\n', at_);
      at_ = end == std::string_view::npos ? text_.size() : end;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      const std::size_t end = text_.find("*/", at_ + 2);
      const std::size_t stop = end == std::string_view::npos ? text_.size() : end + 2;
      for (; at_ < stop; ++at_) line_ += text_[at_] == '\n';
    } else {
      return;
    }
  }
}

Token Lexer::scan_number() {
  Token token{Token::Kind::invalid, text_.substr(at_, 1), 0, line_};
  const std::size_t begin = at_;
  const auto finish = [&](std::size_t end, Token::Kind kind, std::uint64_t bits) {
    token.text = text_.substr(begin, end - begin);
    token.kind = kind;
    token.bits = bits;
    at_ = end;
    return token;
  };
  const char* const first = text_.data() + begin;
  const char* const last = text_.data() + text_.size();
  const char second = begin + 1 < text_.size() ? text_[begin + 1] : '\0';
  std::uint64_t bits = 0;
  const auto prefixed = [&](int base, std::size_t digits, Token::Kind kind) {
    const auto [end, error] = std::from_chars(first + 2, last, bits, base);
    const std::size_t length = static_cast<std::size_t>(end - first) - 2;
    if (error != std::errc{} || (digits != 0 && length != digits)) {
      return finish(begin + 2 + length, Token::Kind::invalid, 0);
    }
    std::size_t stop = begin + 2 + length;
    if (digits == 0 && stop < text_.size() && text_[stop] == 'U') ++stop;
    return finish(stop, kind, bits);
  };
  if (*first == '0') {
    if (second == 'f' || second == 'F') return prefixed(16, 8, Token::Kind::f32);
    if (second == 'd' || second == 'D') return prefixed(16, 16, Token::Kind::f64);
    if (second == 'x' || second == 'X') return prefixed(16, 0, Token::Kind::integer);
    if (second == 'b' || second == 'B') return prefixed(2, 0, Token::Kind::integer);
  }
  std::size_t end = begin;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  const bool fraction = end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1]);
  const bool exponent = end < text_.size() && (text_[end] == 'e' || text_[end] == 'E');
  if (fraction || exponent) {
    double value = 0;
    const auto [stop, error] = std::from_chars(first, last, value);
    const auto length = static_cast<std::size_t>(stop - first);
    if (error != std::errc{}) return finish(begin + length, Token::Kind::invalid, 0);
    return finish(begin + length, Token::Kind::f64, std::bit_cast<std::uint64_t>(value));
  }
  const bool octal = *first == '0' && end - begin > 1;
  const auto [stop, error] = std::from_chars(first, text_.data() + end, bits, octal ? 8 : 10);
  if (error != std::errc{} || stop != text_.data() + end) {
    return finish(end, Token::Kind::invalid, 0);
  }
  if (end < text_.size() && text_[end] == 'U') ++end;
  return finish(end, Token::Kind::integer, bits);
}

Token Lexer::scan() {
  skip_blanks();
  Token token{Token::Kind::end, {}, 0, line_};
  if (at_ >= text_.size()) return token;
  const std::size_t begin = at_;
  const char c = text_[begin];
  if (is_digit(c)) return scan_number();
  if (is_word_start(c)) {
    std::size_t end = begin + 1;
    // A dot or "::" continues the word: modifiers of an opcode, fields of a special register.
    while (end < text_.size()) {
      if (is_word_part(text_[end])) {
        ++end;
      } else if (text_[end] == '.' && end + 1 < text_.size() && is_word_part(text_[end + 1])) {
        ++end;
      } else if (text_.substr(end, 2) == "::" && end + 2 < text_.size() &&
                 is_word_part(text_[end + 2])) {
        end += 2;
      } else {
        break;
      }
    }
    token.kind = Token::Kind::word;
    token.text = text_.substr(begin, end - begin);
    at_ = end;
    return token;
  }
  if (c == '.' && begin + 1 < text_.size() && is_word_part(text_[begin + 1])) {
    std::size_t end = begin + 1;
    while (end < text_.size() && is_word_part(text_[end])) ++end;
    token.kind = Token::Kind::directive;
    token.text = text_.substr(begin, end - begin);
    at_ = end;
    return token;
  }
  if (c == '"') {
    std::size_t end = begin + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size() || text_[end] != '"') {
      token.kind = Token::Kind::invalid;
      token.text = text_.substr(begin, 1);
      at_ = begin + 1;
      return token;
    }
    token.kind = Token::Kind::string;
    token.text = text_.substr(begin + 1, end - begin - 1);
    at_ = end + 1;
    return token;
  }
  static constexpr std::string_view kPunctuation = "{}()[]<>,;:+-*/=@!|&^~?";
  token.kind = kPunctuation.find(c) == std::string_view::npos ? Token::Kind::invalid
                                                              : Token::Kind::punctuation;
  token.text = text_.substr(begin, 1);
  at_ = begin + 1;
  return token;
}

const Token& Lexer::peek() {
  if (!has_peeked_) {
    skip_blanks();
    peeked_at_ = at_;
    peeked_ = scan();
    has_peeked_ = true;
  }
  return peeked_;
}

Token Lexer::next() {
  if (has_peeked_) {
    has_peeked_ = false;
    return peeked_;
  }
  return scan();
}

bool Lexer::accept(char c) {
  if (!peek().is(c)) return false;
  has_peeked_ = false;
  return true;
}

Result<void> Lexer::expect(char c) {
  if (accept(c)) return {};
  return syntax_error(peek(), fmt::format("'{}'", c));
}

std::size_t Lexer::position() {
  peek();
  return peeked_at_;
}

std::string_view Lexer::text_from(std::size_t begin) {
  return text_.substr(begin, position() - begin);
}

void Lexer::skip_line() {
  // A token that was looked at but stands on a later line stays.
  if (has_peeked_ && peeked_.line != line_) return;
  has_peeked_ = false;
  const std::size_t end = text_.find('\n', at_);
  at_ = end == std::string_view::npos ? text_.size() : end;
}

Result<std::string_view> Lexer::skip_braces() {
  if (has_peeked_) {
    at_ = peeked_at_;
    line_ = peeked_.line;
    has_peeked_ = false;
  }
  const std::size_t begin = at_;
  const std::uint32_t first_line = line_;
  unsigned depth = 1;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}') {
      if (--depth == 0) {
        const std::string_view body = text_.substr(begin, at_ - begin);
        ++at_;
        return body;
      }
    } else if (c == '/' && at_ + 1 < text_.size() &&
               (text_[at_ + 1] == '/' || text_[at_ + 1] == '*')) {
      skip_blanks();
      continue;
    } else if (c == '"') {
      const std::size_t end = text_.find_first_of("\"\n", at_ + 1);
      if (end == std::string_view::npos) break;
      if (text_[end] == '"') at_ = end;
    }
    ++at_;
  }
  return Error{ErrorKind::invalid_input, 0,
               fmt::format("The '{{' before PTX line {} is never closed.", first_line)};
}

}  // namespace remora::softgpu
