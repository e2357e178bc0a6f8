// SPDX-License-Identifier: BSL-1.0
// The stencil with messages between processes, one per core, each of which has a block of columns.
// usage: mpiexec -n WORKERS bench_metg_mpi 3|5 COLUMNS WORKERS [check|wrong-stamp|wrong-value]
#include "search.hpp"

#include <mpi.h>

#include <vector>

namespace weft_bench {
namespace {

static_assert(sizeof(number) == sizeof(unsigned long long));

class mpi_rival {
 public:
  mpi_rival(const graph_shape& s, int rank)
      : shape_(s), rank_(rank), begin_(begin_of(rank)), end_(begin_of(rank + 1)) {}
  const graph_shape& shape() const { return shape_; }
  bool prints() const { return rank_ == 0; }
  std::string note() const { return {}; }

  template <class function>
  double slowest(const function& seconds) const {
    MPI_Barrier(MPI_COMM_WORLD);
    return largest(seconds());
  }

  timed_sum run(long steps, fault f) {
    own_.clear();
    for (int i = begin_; i < end_; ++i) own_.push_back(first_buffer(i, f));
    inputs_.assign(own_.size() * std::size_t(shape_.inputs), {-1, -1, 0});
    MPI_Barrier(MPI_COMM_WORLD);
    const stopwatch clock;
    for (int t = 1; t <= shape_.rows(); ++t) {
      exchange();
      for (int i = begin_; i < end_; ++i)
        compute(
            shape_, t, i, steps, [in = inputs_of(i)](int k) -> const buffer& { return in[k]; },
            shape_.last(i) - shape_.first(i) + 1, own_of(i));
    }
    const double seconds = largest(clock.seconds());
    number sum = 0, part = 0;
    for (int i = begin_; i < end_; ++i) part += part_of_sum(shape_, i, own_of(i));
    MPI_Allreduce(&part, &sum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return {seconds, sum};
  }

 private:
  /// Fills the inputs of all own columns: a message for each that another process has, else a copy.
  void exchange() {
    requests_.clear();
    for (int i = begin_; i < end_; ++i)
      for (int from = shape_.first(i); from <= shape_.last(i); ++from) {
        buffer* const in = inputs_of(i) + (from - shape_.first(i));
        if (has(from))
          *in = own_of(from);
        else
          MPI_Irecv(in, sizeof(buffer), MPI_BYTE, owner_of(from), tag(from, i), MPI_COMM_WORLD,
                    next_request());
      }
    // Whom a column reads, reads it.
    for (int i = begin_; i < end_; ++i)
      for (int to = shape_.first(i); to <= shape_.last(i); ++to)
        if (!has(to))
          MPI_Isend(&own_of(i), sizeof(buffer), MPI_BYTE, owner_of(to), tag(i, to), MPI_COMM_WORLD,
                    next_request());
    MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  int begin_of(int process) const {
    return int(static_cast<long>(process) * shape_.columns / long(shape_.workers));
  }
  int owner_of(int column) const {
    int process = int(static_cast<long>(column) * long(shape_.workers) / shape_.columns);
    while (column >= begin_of(process + 1)) ++process;
    return process;
  }
  bool has(int column) const { return begin_ <= column && column < end_; }
  int tag(int from, int to) const { return from * shape_.inputs + (to - from + shape_.inputs / 2); }
  buffer& own_of(int column) { return own_[std::size_t(column - begin_)]; }
  buffer* inputs_of(int column) { return &inputs_[std::size_t((column - begin_) * shape_.inputs)]; }
  MPI_Request* next_request() { return &requests_.emplace_back(); }
  static double largest(double mine) {
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
  }

  graph_shape shape_;
  int rank_, begin_, end_;  // columns begin_ to end_ - 1 are here
  std::vector<buffer> own_, inputs_;
  std::vector<MPI_Request> requests_;
};

}  // namespace
}  // namespace weft_bench

int main(int argc, char** argv) {
  using namespace weft_bench;
  MPI_Init(&argc, &argv);
  const graph_shape s = shape_of(argc, argv, 1);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != int(s.workers)) {
    std::fprintf(stderr, "%d processes in place of %u\n", size, s.workers);
    return 2;
  }
  mpi_rival r(s, rank);
  const int status = measure(r, argc > 4 ? argv[4] : nullptr);
  MPI_Finalize();
  return status;
}
