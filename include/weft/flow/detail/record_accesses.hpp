// SPDX-License-Identifier: BSL-1.0
// What the recorder of a run is told of the arguments of a task.
#pragma once

#include <weft/flow/detail/checked.hpp>
#include <weft/flow/detail/task.hpp>
#include <weft/observe/recorded_body.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>

namespace weft::inline WEFT_ABI::flow {

/// Tells the recorder of a task and its accesses.
template <class... Adaptors, class R, class... Kept>
void record_accesses(observe::recorded_body& body, [[maybe_unused]] result<R> r, const Kept&... kept) {
  [[maybe_unused]] const auto tell = [&body]<class Adaptor>(std::type_identity<Adaptor>, const auto& k) {
    auto use = sched::recorded_use::own;
    if constexpr (requires { Adaptor::weak; })
      if (Adaptor::weak) use = sched::recorded_use::weak;
    tell_rights<Adaptor>(k, [&](sched::access a) {
      // An operation with a state is known by its place in the argument: it is like no other.
      const auto place = reinterpret_cast<std::uintptr_t>(a.operation);
      if (place - reinterpret_cast<std::uintptr_t>(std::addressof(k)) < sizeof k)
        a.mode = access_mode::update;
      body.add(a, use);
    });
    if constexpr (requires { Adaptor::record(body, k); }) Adaptor::record(body, k);
  };
  (tell(std::type_identity<Adaptors>(), kept), ...);
  if constexpr (!std::is_void_v<R>) body.add({.object = r.place, .mode = access_mode::write});
  body.begin();
}

/// Whether a recorder is told nothing of an argument.
template <class Adaptor>
inline constexpr bool is_value =
    !Adaptor::access && !Adaptor::more &&
    !requires(observe::recorded_body& b, const typename Adaptor::kept& k) { Adaptor::record(b, k); };

}  // namespace weft::inline WEFT_ABI::flow
