// SPDX-License-Identifier: Apache-2.0
#include "softgpu/ptx/module.h"

#include <fmt/core.h>

#include <algorithm>

#include "softgpu/exec/access.h"
#include "softgpu/ptx/index.h"
#include "softgpu/ptx/lexer.h"

namespace remora::softgpu {

std::uint32_t lay_out_parameters(const std::vector<Declaration>& parameters,
                                 std::vector<ParameterInfo>& out) {
  std::uint64_t offset = 0;
  for (const Declaration& parameter : parameters) {
    offset = align_up(offset, parameter.alignment);
    out.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(parameter.size),
                   parameter.alignment});
    offset += parameter.size;
  }
  return static_cast<std::uint32_t>(offset);
}

// Reads the module level of the text once, in order.
class Indexer {
 public:
  explicit Indexer(Module& module) : module_(module), lexer_(module.text_) {}

  Result<void> run() {
    REMORA_TRY_DO(read_preamble());
    while (lexer_.peek().kind != Token::Kind::end) REMORA_TRY_DO(read_statement());
    finish();
    return {};
  }

 private:
  // The largest kernel parameter area of CUDA is 32,764 bytes; functions get the same.
  static constexpr std::uint64_t kMaxParameterBytes = 32768;

  Result<void> read_preamble() {
    const Token version = lexer_.next();
    if (!version.is_directive(".version")) return syntax_error(version, "\".version\"");
    const Token number = lexer_.next();
    const std::size_t dot = number.text.find('.');
    if (number.kind != Token::Kind::f64 || dot == std::string_view::npos) {
      return syntax_error(number, "a PTX version such as 9.0");
    }
    for (const char c : number.text) {
      if (c != '.' && (c < '0' || c > '9' || number.text.size() > 5)) {
        return syntax_error(number, "a PTX version such as 9.0");
      }
      if (c != '.') module_.version_ = module_.version_ * 10 + static_cast<std::uint32_t>(c - '0');
    }
    return {};
  }

  Result<void> read_target() {
    do {
      const Token word = lexer_.next();
      if (word.kind != Token::Kind::word) return syntax_error(word, "a target such as sm_75");
      if (word.text.starts_with("sm_")) {
        std::uint32_t target = 0;
        for (const char c : word.text.substr(3)) {
          if (c >= '0' && c <= '9' && target < 10000)
            target = target * 10 + static_cast<std::uint32_t>(c - '0');
        }
        module_.target_ = target;
      }
    } while (lexer_.accept(','));
    return {};
  }

  Result<void> read_statement() {
    if (lexer_.accept(';')) return {};
    const Token token = lexer_.peek();
    if (token.kind != Token::Kind::directive) return syntax_error(token, "a directive");
    if (token.text == ".target") {
      lexer_.next();
      return read_target();
    }
    if (token.text == ".address_size") {
      lexer_.next();
      const Token size = lexer_.next();
      if (size.kind != Token::Kind::integer || size.bits != 64) {
        return syntax_error(size, "64 (32-bit addresses are not supported)");
      }
      return {};
    }
    if (token.text == ".file" || token.text == ".loc" || token.text == ".pragma") {
      lexer_.next();
      lexer_.skip_line();
      return {};
    }
    if (token.text == ".section") return skip_section();
    if (token.text == ".alias") {
      return Error{ErrorKind::unsupported, 0,
                   fmt::format("PTX line {} has .alias, which is not supported.", token.line)};
    }
    Linkage linkage = Linkage::internal;
    for (;; lexer_.next()) {
      const Token& prefix = lexer_.peek();
      if (prefix.is_directive(".visible")) {
        linkage = Linkage::visible;
      } else if (prefix.is_directive(".extern")) {
        linkage = Linkage::external;
      } else if (prefix.is_directive(".weak") || prefix.is_directive(".common")) {
        linkage = Linkage::weak;
      } else {
        break;
      }
    }
    const Token kind = lexer_.next();
    if (kind.is_directive(".entry") || kind.is_directive(".func")) {
      return read_function(linkage, kind.text == ".entry");
    }
    StateSpace space;
    if (!is_state_space(kind, space) || space == StateSpace::reg || space == StateSpace::param) {
      return syntax_error(kind, "a variable or function");
    }
    return read_variables(linkage, space);
  }

  Result<void> skip_section() {
    while (!lexer_.peek().is('{')) {
      if (lexer_.peek().kind == Token::Kind::end) return syntax_error(lexer_.peek(), "'{'");
      lexer_.next();
    }
    lexer_.next();
    REMORA_TRY([[maybe_unused]] std::string_view body, lexer_.skip_braces());
    return {};
  }

  Result<void> read_variables(Linkage linkage, StateSpace space) {
    std::vector<Declaration> declarations;
    // Old text numbers its constant banks: .const[2].
    if (space == StateSpace::constant && lexer_.accept('[')) {
      lexer_.next();
      REMORA_TRY_DO(lexer_.expect(']'));
    }
    REMORA_TRY_DO(parse_declaration(lexer_, space, false, declarations));
    REMORA_TRY_DO(lexer_.expect(';'));
    for (Declaration& declaration : declarations) {
      const auto [at, inserted] =
          module_.variable_by_name_.try_emplace(declaration.name, module_.variables_.size());
      IndexedVariable variable{declaration, linkage, -1};
      if (inserted) {
        module_.variables_.push_back(variable);
      } else if (linkage != Linkage::external) {
        module_.variables_[at->second] = variable;  // the definition behind its declaration
      }
    }
    return {};
  }

  Result<void> read_parameters(std::vector<Declaration>& out) {
    if (lexer_.accept(')')) return {};
    std::uint64_t total = 0;
    do {
      const Token token = lexer_.next();
      StateSpace space;
      if (!is_state_space(token, space) ||
          (space != StateSpace::param && space != StateSpace::reg)) {
        return syntax_error(token, "\".param\"");
      }
      REMORA_TRY_DO(parse_declaration(lexer_, space, true, out));
      total = align_up(total, out.back().alignment) + out.back().size;
      if (total > kMaxParameterBytes) return syntax_error(token, "fewer bytes of parameters");
    } while (lexer_.accept(','));
    return lexer_.expect(')');
  }

  Result<void> read_dimensions(std::uint32_t (&out)[3]) {
    for (int i = 0; i < 3; ++i) {
      const Token value = lexer_.next();
      if (value.kind != Token::Kind::integer || value.bits > UINT32_MAX) {
        return syntax_error(value, "a number");
      }
      out[i] = static_cast<std::uint32_t>(value.bits);
      if (!lexer_.accept(',')) {
        for (++i; i < 3; ++i) out[i] = 1;
        return {};
      }
    }
    return syntax_error(lexer_.peek(), "at most three numbers");
  }

  Result<void> read_function(Linkage linkage, bool is_kernel) {
    IndexedFunction function;
    function.is_kernel = is_kernel;
    function.linkage = linkage;
    if (!is_kernel && lexer_.peek().is_directive(".attribute")) {
      lexer_.next();
      while (!lexer_.peek().is(')') && lexer_.peek().kind != Token::Kind::end) lexer_.next();
      REMORA_TRY_DO(lexer_.expect(')'));
    }
    if (!is_kernel && lexer_.accept('(')) REMORA_TRY_DO(read_parameters(function.returns));
    const Token name = lexer_.next();
    if (name.kind != Token::Kind::word) return syntax_error(name, "a function's name");
    function.name = name.text;
    if (lexer_.accept('(')) REMORA_TRY_DO(read_parameters(function.parameters));
    KernelSignature& signature = function.signature;
    while (lexer_.peek().kind == Token::Kind::directive) {
      const Token directive = lexer_.next();
      std::uint32_t numbers[3] = {0, 0, 0};
      if (directive.text == ".noreturn" || directive.text == ".blocksareclusters" ||
          directive.text == ".explicitcluster") {
        continue;
      }
      if (directive.text == ".pragma") {
        while (!lexer_.accept(';')) {
          if (lexer_.next().kind == Token::Kind::end) return syntax_error(directive, "';'");
        }
        continue;
      }
      if (directive.text == ".abi_preserve" || directive.text == ".abi_preserve_control" ||
          directive.text == ".unified") {
        if (lexer_.peek().kind == Token::Kind::integer) lexer_.next();
        continue;
      }
      REMORA_TRY_DO(read_dimensions(numbers));
      if (directive.text == ".maxntid") {
        std::copy(numbers, numbers + 3, signature.max_threads);
      } else if (directive.text == ".reqntid") {
        std::copy(numbers, numbers + 3, signature.required_threads);
      } else if (directive.text == ".minnctapersm") {
        signature.min_blocks_per_multiprocessor = numbers[0];
      } else if (directive.text == ".maxnreg") {
        signature.max_registers = numbers[0];
      } else if (directive.text != ".maxnctapersm" && directive.text != ".reqnctapercluster" &&
                 directive.text != ".maxclusterrank") {
        return syntax_error(directive, "a directive of functions");
      }
    }
    if (!lexer_.accept(';')) {
      if (!lexer_.peek().is('{')) return syntax_error(lexer_.peek(), "a function's body");
      lexer_.next();
      function.body_line = lexer_.peek().line;
      REMORA_TRY(function.body, lexer_.skip_braces());
      function.has_body = true;
    }
    if (is_kernel) {
      signature.name = std::string(function.name);
      signature.parameter_bytes = lay_out_parameters(function.parameters, signature.parameters);
    }
    const auto [at, inserted] =
        module_.function_by_name_.try_emplace(function.name, module_.functions_.size());
    if (inserted) {
      module_.functions_.push_back(std::move(function));
    } else if (function.has_body) {
      if (module_.functions_[at->second].has_body) {
        return Error{ErrorKind::invalid_input, 0,
                     fmt::format("PTX line {} defines {} a second time.", name.line, name.text)};
      }
      module_.functions_[at->second] = std::move(function);
    }
    return {};
  }

  void finish() {
    for (const IndexedFunction& function : module_.functions_) {
      if (function.is_kernel && function.has_body) module_.kernels_.push_back(&function.signature);
    }
    for (IndexedVariable& variable : module_.variables_) {
      const Declaration& declaration = variable.declaration;
      if (declaration.space != StateSpace::global && declaration.space != StateSpace::constant) {
        continue;
      }
      variable.global_index = static_cast<std::int64_t>(module_.globals_.size());
      module_.globals_.push_back(
          {std::string(declaration.name), declaration.size, declaration.alignment,
           declaration.space == StateSpace::constant ? GlobalSpace::constant : GlobalSpace::global,
           variable.linkage, declaration.managed, !declaration.initializer.empty()});
    }
  }

  Module& module_;
  Lexer lexer_;
};

Module::Module() = default;
Module::~Module() = default;

Result<std::unique_ptr<Module>> Module::parse(std::string_view ptx, ModuleOptions options) {
  ptx = ptx.substr(0, ptx.find('\0'));
  std::unique_ptr<Module> module(new Module);
  module->text_ = std::string(ptx);
  module->name_ = std::move(options.name);
  Indexer indexer(*module);
  Result<void> indexed = indexer.run();
  if (!indexed) {
    return std::move(indexed).error().within(fmt::format("While reading {}", module->name_));
  }
  return module;
}

const KernelSignature* Module::find_kernel(std::string_view name) const {
  const IndexedFunction* function = find_function(name);
  return function && function->is_kernel && function->has_body ? &function->signature : nullptr;
}

const IndexedFunction* Module::find_function(std::string_view name) const {
  const auto at = function_by_name_.find(name);
  return at == function_by_name_.end() ? nullptr : &functions_[at->second];
}

const IndexedVariable* Module::find_variable(std::string_view name) const {
  const auto at = variable_by_name_.find(name);
  return at == variable_by_name_.end() ? nullptr : &variables_[at->second];
}

std::optional<std::size_t> Module::find_global(std::string_view name) const {
  const IndexedVariable* variable = find_variable(name);
  if (!variable || variable->global_index < 0) return std::nullopt;
  return static_cast<std::size_t>(variable->global_index);
}

void Module::bind_globals(std::span<const std::uint64_t> addresses) {
  addresses_.assign(addresses.begin(), addresses.end());
  addresses_.resize(globals_.size());
}

std::uint64_t Module::function_address(std::size_t index) {
  return kFunctionWindow + 16 * (index + 1);
}

}  // namespace remora::softgpu
