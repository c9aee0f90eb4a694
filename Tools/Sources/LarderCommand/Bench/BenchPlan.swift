/// What `larder bench` does.
struct BenchPlan {
  /// How many entries are written, and read.
  let entryCount: Int
  /// How many bytes of text each value has.
  let valueSize: Int
  /// How many tasks read at once.
  let readerCount: Int
  /// How many tasks write at once.
  let writerCount: Int
}
