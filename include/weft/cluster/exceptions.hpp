// SPDX-License-Identifier: BSL-1.0
// How an exception goes to another process: as its own type where that is known, else as its text.
#pragma once

#include <weft/cluster/archive.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <typeinfo>

namespace weft::inline WEFT_ABI {

/// Stands for an exception of another process whose type is unknown here: neither one of the standard
/// library's, nor registered. what() is its text, if it is a std::exception.
class WEFT_CROSSES_MODULES remote_error : public error {
 public:
  /// `type`: its name as in source code.
  remote_error(std::string type, const std::string& text) : error(text), type_(std::move(type)) {}
  /// The name of the type of the original exception.
  const std::string& type_name() const noexcept { return type_; }

 private:
  std::string type_;
};

namespace remote {
namespace detail {

/// How exceptions of one type travel.
struct thrown_kind {
  const std::type_info* type;
  void (*pack)(writer& w, const std::exception_ptr& e);
  std::exception_ptr (*unpack)(reader& r);
};

template <class E, class Use>
void with_exception(const std::exception_ptr& e, Use use) {
  try {
    std::rethrow_exception(e);
  } catch (const E& of_this_type) {
    use(of_this_type);
  }
}

template <class E>
concept made_of_text = std::derived_from<E, std::exception> && std::constructible_from<E, const std::string&>;

template <class E>
constexpr thrown_kind kind_of() noexcept {
  if constexpr (travels<E>)
    return {&typeid(E),
            [](writer& w, const std::exception_ptr& e) { with_exception<E>(e, [&w](const E& x) { w(x); }); },
            [](reader& r) { return std::make_exception_ptr(r.get<E>()); }};
  else if constexpr (made_of_text<E>)
    return {&typeid(E),
            [](writer& w, const std::exception_ptr& e) {
              with_exception<E>(e, [&w](const E& x) { w(std::string(x.what())); });
            },
            [](reader& r) { return std::make_exception_ptr(E(r.get<std::string>())); }};
  else
    return {&typeid(E), [](writer&, const std::exception_ptr&) {},
            [](reader&) { return std::make_exception_ptr(E()); }};
}

/// An error code, and the text in front of what it says. Categories other than the standard library's do not
/// travel, so neither do their codes.
inline thrown_kind kind_of_system_error() noexcept {
  return {&typeid(std::system_error),
          [](writer& w, const std::exception_ptr& e) {
            with_exception<std::system_error>(e, [&w](const std::system_error& x) {
              const std::string said = x.code().message();
              std::optional<std::string> text;
              if (x.what() != said) text = x.what();
              if (text && text->ends_with(": " + said)) text->resize(text->size() - said.size() - 2);
              w(x.code().value(), x.code().category() == std::system_category(), text);
            });
          },
          [](reader& r) {
            const int code = r.get<int>();
            const auto& category = r.get<bool>() ? std::system_category() : std::generic_category();
            const auto text = r.get<std::optional<std::string>>();
            return std::make_exception_ptr(text ? std::system_error(code, category, *text)
                                                : std::system_error(code, category));
          }};
}
inline thrown_kind kind_of_remote_error() noexcept {
  return {&typeid(remote_error),
          [](writer& w, const std::exception_ptr& e) {
            with_exception<remote_error>(
                e, [&w](const remote_error& x) { w(x.type_name(), std::string(x.what())); });
          },
          [](reader& r) {
            auto type = r.get<std::string>();
            return std::make_exception_ptr(remote_error(std::move(type), r.get<std::string>()));
          }};
}

/// All types that travel. *Thread safety*: any thread, any member.
class thrown_kinds {
 public:
  thrown_kinds()
      : all_{kind_of<std::logic_error>(),
             kind_of<std::domain_error>(),
             kind_of<std::invalid_argument>(),
             kind_of<std::length_error>(),
             kind_of<std::out_of_range>(),
             kind_of<std::runtime_error>(),
             kind_of<std::range_error>(),
             kind_of<std::overflow_error>(),
             kind_of<std::underflow_error>(),
             kind_of<std::bad_alloc>(),
             kind_of<std::bad_array_new_length>(),
             kind_of<std::bad_cast>(),
             kind_of<std::bad_typeid>(),
             kind_of<std::bad_exception>(),
             kind_of<std::bad_function_call>(),
             kind_of<std::bad_optional_access>(),
             kind_of<std::bad_variant_access>(),
             kind_of<std::bad_weak_ptr>(),
             kind_of<std::exception>(),
             kind_of<error>(),
             kind_of<cancelled>(),
             kind_of<option_error>(),
             kind_of_system_error(),
             kind_of_remote_error()} {}

  void add(const thrown_kind& k) {
    const std::lock_guard hold(mutex_);
    if (!find_(k.type->name())) all_.push_back(k);
  }
  /// By the name of the type, which is the same in all processes. *Returns*: nothing if it is unknown.
  std::optional<thrown_kind> find(const std::string& name) const {
    const std::lock_guard hold(mutex_);
    return find_(name);
  }
  static thrown_kinds& of_process() {
    static thrown_kinds all;
    return all;
  }

 private:
  std::optional<thrown_kind> find_(const std::string& name) const {
    for (const thrown_kind& k : all_)
      if (name == k.type->name()) return k;
    return std::nullopt;
  }

  mutable std::mutex mutex_;
  std::vector<thrown_kind> all_;
};

/// What is known of any exception.
struct seen_exception {
  const std::type_info* type = nullptr;  ///< null: of another language
  std::string text;
  bool travels_as_type = true;
};
inline seen_exception look_at(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::system_error& x) {
    const auto& c = x.code().category();
    return {&typeid(x), x.what(), c == std::system_category() || c == std::generic_category()};
  } catch (const std::exception& x) {
    return {&typeid(x), x.what()};
  } catch (...) {
    return {abi::__cxa_current_exception_type(), "an exception that has no text"};
  }
}
inline std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    &std::free);
  return status == 0 ? text.get() : name;
}

/// Appends an exception. *Requires*: it is not null. *Throws*: std::bad_alloc, and what copying it throws.
inline void pack_exception(writer& w, const std::exception_ptr& e) {
  const seen_exception seen = look_at(e);
  const std::string name = seen.type != nullptr ? seen.type->name() : "";
  const auto kind = thrown_kinds::of_process().find(name);
  const bool known = kind && seen.travels_as_type;
  w(known, name);
  if (known)
    kind->pack(w, e);
  else
    w(seen.text);
}
/// The exception that was appended, or a remote_error for it. *Throws*: weft::error for a damaged message.
inline std::exception_ptr unpack_exception(reader& r) {
  const bool known = r.get<bool>();
  const auto name = r.get<std::string>();
  if (!known) return std::make_exception_ptr(remote_error(readable(name.c_str()), r.get<std::string>()));
  const auto kind = thrown_kinds::of_process().find(name);
  if (!kind)
    throw error("weft: a process has registered the exception " + readable(name.c_str()) +
                ", and this one has not; register it in all before the first run");
  return kind->unpack(r);
}

}  // namespace detail

/// Lets exceptions of type E travel as what they are. A type with a base class that travels needs this, too.
/// *Requires*: E travels (archive.hpp), or is a std::exception that can be made of its text. Called in all
/// processes, before the first run. *Throws*: std::bad_alloc. *Thread safety*: any thread.
template <class E>
void register_exception() {
  static_assert(
      travels<E> || detail::made_of_text<E>,
      "weft: an exception that is to go to another process needs 'serialize', or a constructor that "
      "takes its text");
  detail::thrown_kinds::of_process().add(detail::kind_of<E>());
}

}  // namespace remote
}  // namespace weft::inline WEFT_ABI
