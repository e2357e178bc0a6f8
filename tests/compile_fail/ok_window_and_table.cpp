#include <weft/rma.hpp>
struct whole {
  int a, b;
  bool operator==(const whole&) const = default;
};
void f(const weft::mpi::communicator& world) {
  weft::rma::window<whole> window(world, 1);
  weft::rma::hash_table<whole, int> table(world, {.buckets_per_process = 64});
}
