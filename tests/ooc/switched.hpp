// SPDX-License-Identifier: BSL-1.0
// A switch that has another value until the end of a scope, also if a check in it throws.
#pragma once

namespace weft_test {

template <class Switch, class Value>
class switched {
 public:
  switched(Switch& of, Value value) : of_(of), before_(of) { of_ = value; }
  switched(const switched&) = delete;
  switched& operator=(const switched&) = delete;
  ~switched() { of_ = before_; }

 private:
  Switch& of_;
  Value before_;
};

}  // namespace weft_test
