// expect: nothing; the legal narrowings and handings on, and every way to name a right
#include <weft/weft.hpp>
void look(weft::read<int>);
void set(weft::write<int>);
void change(weft::update<int>);
void reader(weft::read<int> r) {
  weft::fork(look, r);
  weft::fork([](const int&) {}, weft::read(r));
}
void writer(weft::write<int> w) {
  weft::fork(set, w);
  weft::fork([](int&) {}, weft::write(w));
}
void updater(weft::update<int> u) {
  weft::fork(look, u);
  weft::fork(set, u);
  weft::fork(change, u);
  weft::fork([](const int&) {}, weft::read(u));
  weft::fork([](int&) {}, weft::write(u));
  weft::fork([](int&) {}, weft::update(u));
  weft::fork([](auto& v) { v = 1; }, weft::update(u));
}
int main() {
  int mine = 0;
  weft::runtime rt;
  weft::shared<int> x(1);
  auto m = weft::borrow(mine);
  rt.run(updater, x);
  rt.run([&] {
    weft::fork(reader, x);
    weft::fork(writer, m);
    weft::fork({.name = "named"}, updater, m);
    weft::fork([](int copy) { static_cast<void>(copy); }, weft::read(x));
  });
}
