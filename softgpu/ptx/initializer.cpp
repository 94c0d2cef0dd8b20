// SPDX-License-Identifier: Apache-2.0
// Initial images of module variables: numbers, nested lists, and addresses of variables and
// functions (plain, `generic(x)`, with offsets, or one byte of an address by a mask).
#include <fmt/core.h>

#include <bit>

#include "softgpu/ptx/index.h"
#include "softgpu/ptx/lexer.h"
#include "softgpu/ptx/module.h"

namespace remora::softgpu {
namespace {

class ImageWriter {
 public:
  ImageWriter(const Module& module, const Declaration& declaration, MutableBytes image)
      : module_(module),
        declaration_(declaration),
        lexer_(declaration.initializer, declaration.line),
        image_(image) {}

  Result<void> run() {
    unsigned depth = 0;
    while (lexer_.peek().kind != Token::Kind::end) {
      if (lexer_.accept('{')) {
        ++depth;
      } else if (lexer_.peek().is('}') && depth > 0) {
        lexer_.next();
        --depth;
      } else if (!lexer_.accept(',')) {
        REMORA_TRY(std::uint64_t bits, read_value());
        REMORA_TRY_DO(write(bits));
      }
    }
    return {};
  }

 private:
  Result<std::uint64_t> address_of(const Token& name) {
    if (const std::optional<std::size_t> index = module_.find_global(name.text)) {
      const std::uint64_t address = module_.global_addresses()[*index];
      if (address != 0) return address;
      return Error{ErrorKind::not_found, 0,
                   fmt::format("Variable {} is declared but nowhere defined.", name.text)};
    }
    if (const IndexedFunction* function = module_.find_function(name.text)) {
      return Module::function_address(
          static_cast<std::size_t>(function - module_.functions().data()));
    }
    return syntax_error(name, "a variable or function of the module");
  }

  Result<std::uint64_t> read_value(unsigned depth = 0) {
    if (depth > 4) return syntax_error(lexer_.peek(), "a simpler value");
    // 0xFF00(name): one byte of an address, selected by the mask.
    if (lexer_.peek().kind == Token::Kind::integer) {
      const Token number = lexer_.next();
      if (!lexer_.accept('(')) return number.bits;
      REMORA_TRY(std::uint64_t address, read_value(depth + 1));
      REMORA_TRY_DO(lexer_.expect(')'));
      if (number.bits == 0) return syntax_error(number, "a mask that is not zero");
      return (address & number.bits) >> std::countr_zero(number.bits);
    }
    const Token token = lexer_.next();
    if (token.is('-')) {
      const Token number = lexer_.next();
      if (number.kind == Token::Kind::integer) return 0 - number.bits;
      if (number.kind == Token::Kind::f64)
        return float_bits(number.bits ^ (std::uint64_t{1} << 63));
      return syntax_error(number, "a number");
    }
    if (token.kind == Token::Kind::f32) return token.bits;
    if (token.kind == Token::Kind::f64) return float_bits(token.bits);
    if (token.is_word("generic")) {
      REMORA_TRY_DO(lexer_.expect('('));
      REMORA_TRY(std::uint64_t address, read_value(depth + 1));
      REMORA_TRY_DO(lexer_.expect(')'));
      return with_offset(address);
    }
    if (token.kind != Token::Kind::word) return syntax_error(token, "an initial value");
    REMORA_TRY(std::uint64_t address, address_of(token));
    return with_offset(address);
  }

  Result<std::uint64_t> with_offset(std::uint64_t address) {
    const bool minus = lexer_.peek().is('-');
    if (!minus && !lexer_.peek().is('+')) return address;
    lexer_.next();
    const Token number = lexer_.next();
    if (number.kind != Token::Kind::integer) return syntax_error(number, "an offset");
    return minus ? address - number.bits : address + number.bits;
  }

  std::uint64_t float_bits(std::uint64_t f64_bits) const {
    if (declaration_.type != ScalarType::f32) return f64_bits;
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(f64_bits)));
  }

  Result<void> write(std::uint64_t bits) {
    const std::uint32_t size = size_bytes(declaration_.type);
    if (size > 8 || image_.size() - at_ < size) {
      return Error{ErrorKind::invalid_input, 0,
                   fmt::format("The initializer of {} is longer than its {} bytes.",
                               declaration_.name, image_.size())};
    }
    std::memcpy(image_.data() + at_, &bits, size);
    at_ += size;
    return {};
  }

  const Module& module_;
  const Declaration& declaration_;
  Lexer lexer_;
  MutableBytes image_;
  std::size_t at_ = 0;
};

}  // namespace

Result<void> Module::build_global_image(std::size_t index, MutableBytes image) const {
  if (index >= globals_.size() || image.size() != globals_[index].size ||
      addresses_.size() != globals_.size()) {
    return Error{
        ErrorKind::internal, 0,
        fmt::format("The image of variable {} is asked for with {} bytes.", index, image.size())};
  }
  std::fill(image.begin(), image.end(), std::byte{0});
  const IndexedVariable* variable = find_variable(globals_[index].name);
  return ImageWriter(*this, variable->declaration, image).run();
}

}  // namespace remora::softgpu
